"""The reserved words of UJMW 1.1, for our server and for our client of such services (pure)."""

RETURN = "return"
FAULT = "fault"
SIDE_CHANNEL = "_"
MEDIA_TYPE = "application/json; charset=utf-8"
