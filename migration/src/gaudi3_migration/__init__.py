"""Rewrites programs for optimum-habana into programs for plain transformers 5: `gaudi3-train migrate`."""

from gaudi3_migration.command import migrated_command as migrated_command
from gaudi3_migration.command import migrated_json as migrated_json
from gaudi3_migration.findings import Finding as Finding
from gaudi3_migration.findings import Migrated as Migrated
from gaudi3_migration.findings import record as record
from gaudi3_migration.findings import text as text
from gaudi3_migration.job import job as job
from gaudi3_migration.page import TITLE as TITLE
from gaudi3_migration.page import table as table
from gaudi3_migration.program import MigrationError as MigrationError
from gaudi3_migration.program import difference as difference
from gaudi3_migration.program import migrate as migrate
from gaudi3_migration.program import migrate_json_file as migrate_json_file
