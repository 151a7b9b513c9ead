# Written by terraform/generate.py from terraform/modules/ibm, where each variable is checked.

