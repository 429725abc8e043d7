"""What the compiled module offers; see src/*.c for what each does."""
