import { type Html, html, renderField } from '../../../web/ui/index.ts'
import type { Parameters } from '../../base/request.ts'
import type { UsersContext } from '../../users/context.ts'
import { describePasswordRules, findNewPasswordFault, type PasswordOwner } from '../../users/passwords.ts'

/** A new password, entered twice. */
interface NewPassword {
  readonly next: string
  readonly again: string
}

export interface PasswordFault {
  readonly field: 'current' | keyof NewPassword
  readonly text: string
}

export function readNewPassword(form: Parameters): NewPassword {
  return { next: form.get('next') ?? '', again: form.get('again') ?? '' }
}

export function findPasswordFault(
  { settings, brand }: Pick<UsersContext, 'settings' | 'brand'>,
  { next, again }: NewPassword,
  owner: Pick<PasswordOwner, 'username' | 'displayName'>,
): PasswordFault | undefined {
  const { minPasswordLength: minLength } = settings
  const fault = findNewPasswordFault(next, { ...owner, brand: brand.name, minLength })
  if (fault !== undefined)
    return { field: 'next', text: `${fault.text[0]?.toUpperCase()}${fault.text.slice(1)}.` }
  return next === again ? undefined : { field: 'again', text: 'The two entries differ.' }
}

export const SAME_PASSWORD: PasswordFault = {
  field: 'next',
  text: 'Use another password than the current one.',
}

export function renderPasswordField(
  name: PasswordFault['field'],
  label: string,
  fault: PasswordFault | undefined,
  hint?: string,
): Html {
  const error = fault?.field === name ? fault.text : undefined
  return renderField({
    name,
    label,
    type: 'password',
    autocomplete: name === 'current' ? 'current-password' : 'new-password',
    required: true,
    autofocus: error !== undefined,
    error,
    hint,
  })
}

export function renderNewPasswordFields(
  { settings }: Pick<UsersContext, 'settings'>,
  fault: PasswordFault | undefined,
): Html {
  const rules = describePasswordRules(settings.minPasswordLength)
  return html`${renderPasswordField('next', 'New password', fault, rules)}
${renderPasswordField('again', 'New password again', fault)}`
}
