import { type Html, html, renderAlert, renderDateTime } from '../../../../web/ui/index.ts'
import { paths } from '../../../base/paths.ts'
import type { WrongProofs } from '../../../users/factors/wrong-proofs.ts'

/** Wrong second factors, for the owner of the account: only somebody who knows the password can enter them. */
export function describeWrongProofs({ count }: WrongProofs): string {
  return count === 1
    ? 'One wrong code or passkey was entered after your password in the last 30 days.'
    : `${count} wrong codes or passkeys were entered after your password in the last 30 days.`
}

export function renderWrongProofs(wrong: WrongProofs): Html {
  const { count, last, addresses } = wrong
  const which = count === 1 ? 'It was entered' : 'The last one was entered'
  const from = addresses.length > 0 && html`, from ${addresses.join(', ')}`
  return renderAlert(
    describeWrongProofs(wrong),
    html`${which} ${renderDateTime(last)}${from}. If that was not you, somebody knows your password: <a href="${paths.accountPassword}">change it</a>.`,
    'warn',
  )
}
