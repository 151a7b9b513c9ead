"""How the tests are run: the parts of `make test`, proofs that take long, and the floor of the coverage."""
