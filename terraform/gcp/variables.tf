# Written by terraform/generate.py from terraform/modules/gcp, where each variable is checked.

