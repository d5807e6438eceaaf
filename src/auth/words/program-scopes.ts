/** The scope of the administration API, for clients without a user (ADMIN-1). */
export const ADMIN_SCOPE = 'sallyport/admin'

/** What auditors may do, by the administration API (ADMIN-31). */
export const ADMIN_READ_SCOPE = 'sallyport/admin.read'

/** The scope of other FHIR servers that add records to the audit trail (AUDIT-24). */
export const AUDIT_SCOPE = 'sallyport/audit'

/** Whether it is the scope of a program that uses this server itself. Such a client has no other scope, and is not an app. */
export function isProgramScope(scope: string): boolean {
  return [ADMIN_SCOPE, ADMIN_READ_SCOPE, AUDIT_SCOPE].includes(scope)
}
