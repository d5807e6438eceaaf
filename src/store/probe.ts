import { randomUUID } from 'node:crypto'

/**
 * The statements of a transaction that shows whether the audit trail can be written, and leaves nothing: adding a record
 * takes the privilege, the room and the primary that real records need; the commit takes the disk.
 */
export function probeStatements(): readonly string[] {
  const id = randomUUID()
  return [
    'savepoint probe',
    "insert into audit_event (at, server, kind, allowed, status) values (0, 'auth', 'probe', false, 0)",
    'rollback to savepoint probe',
    `insert into audit_intent (id, at, record) values ('${id}', 0, '')`,
    `delete from audit_intent where id = '${id}'`,
  ]
}
