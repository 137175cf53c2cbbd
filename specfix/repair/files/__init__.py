"""What lies in the output folder: one module per file, and one for the models' folders."""
