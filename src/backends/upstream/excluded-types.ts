/** AuditEvents are served from the audit trail, and never taken from an upstream. */
export const EXCLUDED_TYPES: ReadonlySet<string> = new Set(['AuditEvent'])
