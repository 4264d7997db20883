"""What of our environment a CLI gets to see: an allow list, never a deny list. Pure."""

from collections.abc import Iterable, Mapping

_ALLOWED = frozenset(
    (
        # where things are and who runs them
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TEMP", "TMP"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
        # language and time
        *("LANG", "LANGUAGE", "TZ", "TERM"),
        # how to reach the provider from behind a company's proxy
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"),
        # Windows cannot start a program without these
        *("SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA"),
    )
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def base_environment(
    source: Mapping[str, str], *, keep: Iterable[str] = (), extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment for a CLI: what any program needs, the names in `keep` where `source` has them, `extra` last.

    Everything else is dropped, so another agent's session variables, provider keys and our own secrets never reach the
    peer by accident. Text is UTF-8 even where no locale is set, and a proxy never stands between the CLI and loopback.
    """
    kept = frozenset(keep)
    chosen = {
        name: value
        for name, value in source.items()
        if name in kept or name.upper() in _ALLOWED or name.startswith("LC_")
    }
    chosen.update(extra or {})
    if not any(chosen.get(name) for name in ("LANG", "LC_ALL", "LC_CTYPE")):
        chosen["LANG"] = "C.UTF-8"
    return chosen | _no_proxy_for_loopback(chosen)


def _no_proxy_for_loopback(environment: Mapping[str, str]) -> dict[str, str]:
    """Both spellings, with one value: programs differ in which they read, and in which wins."""
    given = [environment.get(name, "") for name in ("NO_PROXY", "no_proxy")]
    hosts = [host.strip() for value in given for host in value.split(",") if host.strip()]
    value = ",".join(dict.fromkeys((*hosts, *_LOOPBACK)))
    return {"NO_PROXY": value, "no_proxy": value}
