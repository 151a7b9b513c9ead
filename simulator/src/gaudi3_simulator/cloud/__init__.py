"""A stand-in for a cloud's Terraform provider: never the provider's own, and no proof of what the cloud does.

Terraform starts ``serve.py`` under the provider's name. Its schema is what the provider's public source says
(``schemas/``), and behind it is a simulated cloud (``world.py``, ``ibm.py``) whose rules each name their source.
"""
