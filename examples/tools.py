"""Two tools for `harness run --tools examples/tools.py`: every public function of the file is one."""

from typing import Literal

from harness import tool

STATIONS = {"Oslo": 3, "Rome": 19, "Lima": 24}


@tool(read_only=True)
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, object]:
    """The temperature in a city, now."""
    if city not in STATIONS:
        raise LookupError(f"no station in '{city}', there is one in each of: {', '.join(STATIONS)}")
    celsius = STATIONS[city]
    return {"city": city, "temperature": celsius if unit == "celsius" else celsius * 9 / 5 + 32, "unit": unit}


@tool(read_only=True)
def list_cities() -> list[str]:
    """The cities that have a weather station."""
    return sorted(STATIONS)
