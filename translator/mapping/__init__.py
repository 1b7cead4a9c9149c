"""The mapping engine: rows that read and write by one declaration, and tables that check themselves."""
