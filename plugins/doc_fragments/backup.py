# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)

from __future__ import annotations


class ModuleDocFragment:
    """Options of the modules that call restic; the argument spec is in module_utils/_module_bodies/backup.py."""

    DOCUMENTATION = r"""
options:
  repository:
    description:
      - Where the backups lie, as restic names it. That is an absolute path, or an address such as
        V(sftp:backup@store:/srv/gaudi) and V(s3:https://store/bucket).
      - One repository for each machine keeps its secrets from the others, as all who have the password read all of it.
    type: str
    required: true
  password:
    description:
      - The password that encrypts the repository. Nobody can read a backup without it, so keep it elsewhere.
      - It is given to restic in its environment, and written nowhere.
    type: str
    required: true
  environment:
    description: What the store asks for, such as C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY).
    type: dict
    default: {}
  ssh_key:
    description:
      - For a store over SFTP, the private key that it knows this machine by. Empty takes what ssh has of its own.
      - It is held in memory, from which ssh reads it, and written nowhere.
    type: str
    default: ""
  ssh_known_hosts:
    description:
      - For a store over SFTP, the lines of C(known_hosts) with its host keys. Empty takes what this machine knows.
      - A store whose host key is not among them is refused.
    type: str
    default: ""
  host:
    description: The name of the machine in the repository.
    type: str
    required: true
  cluster:
    description:
      - Of which cluster the backup is, where another one may have a machine of that name in the same repository.
      - A backup is compared with those of this cluster alone, and the newest of them is restored. Where it is empty and
        the repository has backups of named clusters, a restore is refused that does not name its snapshot.
    type: str
    default: ""
  kinds:
    description: What the machine is, which says where its state lies. What is not there is left out.
    type: list
    elements: str
    choices: [monitoring, node, slurm, controller]
    default: []
  folders:
    description: Folders by the names that they have in the backup, such as a controller's C(secrets).
    type: dict
    default: {}
  paths:
    description: Further files and folders.
    type: list
    elements: path
    default: []
  working_folder:
    description: Folder for the copies of a run and restic's cache. It is made where missing, for its owner alone.
    type: path
    default: /var/lib/gaudi3-backup
  root:
    description: Folder below which the machine's files lie, such as a mounted disk. MariaDB is then left out.
    type: path
    default: /
  restic_executable:
    description: The program restic, of version 0.14 or later.
    type: str
    default: restic
"""
