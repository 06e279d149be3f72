"""Live audio: a program between a microphone and a loudspeaker, and the account of it."""

from streaming.live.account import Account
from streaming.live.form import Behaviour
from streaming.live.live import Live
from streaming.live.plan import Plan

__all__ = ["Account", "Behaviour", "Live", "Plan"]
