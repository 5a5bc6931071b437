"""A small MXoE host of its own: written from the worked examples of the specification alone, so that an error that
both endpoints of a conversation of mxwire would share is seen. It must import nothing of mxwire, nor be imported by
it."""
