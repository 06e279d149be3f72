"""(being written by helper VD2, at the lead's wish: VD leaves this file alone and goes on with control, latencies, purity of the compiled code)"""
