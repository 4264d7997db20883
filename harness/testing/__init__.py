"""What proves connectors and peers: probes, scenarios and the stand-ins they run against."""
