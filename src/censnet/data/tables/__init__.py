"""Tables of nodes, edges and graphs: files, columns, ids, and their way to tensors."""
