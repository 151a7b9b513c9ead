# Written by terraform/generate.py from terraform/modules/azure, where each variable is checked.

