"""The hardware, kernel interface and vendor tools of one simulated Gaudi 3 node.

On a node this package lies at ``/usr/lib/gaudi3-simulator/gaudi3_simulator_node`` and needs nothing but
Python 3.9. It stands in for

* eight (or fewer) HL-325L cards on the PCI bus, with an identity that survives restarts and faults on
  request;
* the ``habanalabs*`` kernel modules: ``modprobe``, ``lsmod``, ``modinfo``, ``/sys/module``,
  ``/sys/class/accel``, ``/dev/accel``, ``dmesg``;
* the vendor's command-line tools: ``hl-smi``, ``manage_network_ifs.sh``, ``hl-fw-loader``.

Nothing it prints was measured on a Gaudi card: values are made up in the right shape.

Every tool is a launcher of five lines which calls ``main(arguments)`` of one module here, for example::

    #!/usr/bin/python3 -IS
    import sys
    sys.path.insert(0, "/usr/lib/gaudi3-simulator")
    from gaudi3_simulator_node.hl_smi import main
    sys.exit(main(sys.argv[1:], release="1.23.0-695"))

========================  ==========================================  ============================
Tool                      Function                                    Installed by
========================  ==========================================  ============================
``gaudi3-simulator-node``  ``cli.main(arguments)``                     the node image
``modprobe``              ``kmod_tools.modprobe(arguments)``          the node image
``rmmod``                 ``kmod_tools.rmmod(arguments)``             the node image
``lsmod``                 ``kmod_tools.lsmod(arguments)``             the node image
``modinfo``               ``kmod_tools.modinfo(arguments)``           the node image
``dmesg``                 ``dmesg.main(arguments)``                   the node image
``hl-smi``                ``hl_smi.main(arguments, release)``         vendor package firmware-tools
``hl-fw-loader``          ``hl_fw_loader.main(arguments, release)``   vendor package firmware-odm
``manage_network_ifs.sh``  ``manage_network_ifs.main(arguments, ...)``  vendor package qual
``libhlml.so``            ``hlml.main(release)``, started by it       vendor package firmware-tools
========================  ==========================================  ============================

``launchers`` holds the text of all of them, and ``releases`` what each release's packages contain.

Files: ``/var/lib/gaudi3-simulator/state.json`` (cards and faults, survives a reboot) and
``/run/gaudi3-simulator/`` (loaded modules, ports, sensors, kernel log, lost on reboot as on hardware). With
``GAUDI3_SIMULATOR_ROOT`` set every path is taken under that folder and nothing is mounted, which is how the
tests run.

``hl-smi`` is called often, so modules on its path import little: no ``typing``, ``re``, ``pathlib``,
``dataclasses`` or ``argparse``, which together cost more than the tool's own work.
"""
