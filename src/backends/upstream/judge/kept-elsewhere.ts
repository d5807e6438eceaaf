/** AuditEvents are served from the audit trail, and never taken from an upstream. */
export const KEPT_ELSEWHERE: ReadonlySet<string> = new Set(['AuditEvent'])
