import type { Parameters } from '../parameters.ts'

export interface PasswordForm {
  readonly current: string
  readonly next: string
  readonly again: string
}

export interface PasswordFault {
  readonly field: keyof PasswordForm
  readonly text: string
}

const SHORTEST = 8
/** Bcrypt ignores further bytes. */
const MAX_BYTES = 72

export function readPasswordForm(form: Parameters): PasswordForm {
  return {
    current: form.get('current') ?? '',
    next: form.get('next') ?? '',
    again: form.get('again') ?? '',
  }
}

/** The first fault of a new password, before the current one is compared. */
export function findPasswordFault({ current, next, again }: PasswordForm): PasswordFault | undefined {
  if (current === '') return { field: 'current', text: 'Enter your current password.' }
  if ([...next].length < SHORTEST) return { field: 'next', text: `Use at least ${SHORTEST} characters.` }
  if (Buffer.byteLength(next) > MAX_BYTES) return { field: 'next', text: `Use at most ${MAX_BYTES} bytes.` }
  if (next === current) return { field: 'next', text: 'Use another password than the current one.' }
  if (next !== again) return { field: 'again', text: 'The two entries differ.' }
  return undefined
}
