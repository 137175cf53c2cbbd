"""Do the checker and real engines agree about pairs that a generator has mutated?"""
