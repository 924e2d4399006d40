"""The gateway beside direct calls and beside other routers, in front of a stub engine as fast as Python makes them."""
