/**
 * Every operation of administrators, as the audit trail names it, and whether a clinician needs a recent sign-in for it
 * (ADMIN-4). `asks`: it gives access, or decides who has it. `asks about administrators`: it ends access, and could lock out
 * other administrators. `never asks`: it ends access or reads.
 */
export const OPERATIONS = {
  'client add': 'asks',
  'client set': 'asks',
  'client approve': 'asks',
  'client enable': 'asks',
  'client rotate-secret': 'asks',
  'client disable': 'asks about administrators',
  'client remove': 'asks about administrators',
  'clinician add': 'asks',
  'clinician set': 'asks',
  'clinician enable': 'asks',
  'clinician set-password': 'asks',
  'clinician link': 'asks',
  'clinician unlink': 'asks',
  'clinician disable': 'asks about administrators',
  'clinician end-sessions': 'never asks',
  'account add': 'asks',
  'account set': 'asks',
  'account enable': 'asks',
  'account set-password': 'asks',
  'account link': 'asks',
  'account unlink': 'asks',
  'account disable': 'asks about administrators',
  'account end-sessions': 'never asks',
  'grant revoke': 'never asks',
  'keys rotate': 'asks',
  'keys withdraw': 'asks',
  'settings reload': 'asks',
  // A consequence of a reload.
  'policy changed': 'never asks',
  'log-level set': 'never asks',
  'policy explain': 'never asks',
  'policy validate': 'never asks',
  'provider test': 'never asks',
  'audit list': 'never asks',
  'audit show': 'never asks',
  'audit export': 'never asks',
} as const satisfies Readonly<Record<string, 'asks' | 'asks about administrators' | 'never asks'>>

export type Operation = keyof typeof OPERATIONS

/** Whether an operation gives access, so that its pages ask for a sign-in before they are shown. */
export function givesAccess(operation: Operation): boolean {
  return OPERATIONS[operation] === 'asks'
}

export function needsRecentSignIn(operation: Operation, isAboutAdministrator: boolean): boolean {
  return (
    givesAccess(operation) || (isAboutAdministrator && OPERATIONS[operation] === 'asks about administrators')
  )
}
