"""SMILES to graphs of atoms and bonds."""
