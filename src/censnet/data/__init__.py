"""From a user's tables, SMILES and objects to graphs, and back to their rows."""

from censnet.data.dataset import Dataset
from censnet.data.load import load_data
from censnet.data.tables.files import Tables, read_table, write_table
from censnet.data.tables.schema import Schema
from censnet.errors import DataError

__all__ = ["DataError", "Dataset", "Schema", "Tables", "load_data", "read_table", "write_table"]
