"""What a browser is told about every page: which sources it may use, and who may frame it."""


def page_headers(form_action: str = "'self'") -> dict[str, str]:
    """`form_action` is where the forms of the page may be sent to."""
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
            f"connect-src 'self'; form-action {form_action}; base-uri 'none'; "
            "frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
