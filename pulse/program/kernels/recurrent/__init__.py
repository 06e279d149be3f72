"""Recurrent layers: RNN, GRU and LSTM. ``layer`` has what all of them share."""
