"""A small independent MXoE host, written only from the worked examples of the specification, so that errors which two
hosts of mxwire would share are detected. It must not import mxwire, and mxwire must not import it.
"""
