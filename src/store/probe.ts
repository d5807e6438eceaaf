import { randomUUID } from 'node:crypto'

/**
 * The statements of a transaction that shows whether the database can be written, and leaves nothing. Where requests
 * depend on the audit trail it is the trail that is tried: adding a record takes the privilege, the room and the
 * primary that real records need; the commit takes the disk.
 */
export function listProbeStatements(auditRequired: boolean): readonly string[] {
  const id = randomUUID()
  if (!auditRequired)
    return [
      `insert into revocation (id, revoked_at, expires_at) values ('${id}', 0, 0)`,
      `delete from revocation where id = '${id}'`,
    ]
  return [
    'savepoint probe',
    "insert into audit_event (at, server, kind, allowed, status) values (0, 'auth', 'probe', false, 0)",
    'rollback to savepoint probe',
    `insert into audit_intent (id, at, record) values ('${id}', 0, '')`,
    `delete from audit_intent where id = '${id}'`,
  ]
}
