"""`censnet serve`: trained runs behind HTTP, in processes of their own, and a page to try them on."""
