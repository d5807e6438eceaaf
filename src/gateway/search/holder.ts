import { hash } from 'node:crypto'
import type { Admitted } from '../../fhir/index.ts'

const holders = new WeakMap<Admitted, string>()

/**
 * Whose grant it is, for what is bound to it: the same for every token of one grant, so that paging survives a refresh,
 * and another for any other user, client, patient or set of scopes.
 */
export function holderOf(admitted: Admitted): string {
  let holder = holders.get(admitted)
  if (holder === undefined) {
    const { issuer, subject, clientId, patient, fhirUser, scopes = [] } = admitted.grant ?? {}
    const words = scopes.map(scope => scope.text).toSorted()
    holder = hash(
      'sha256',
      JSON.stringify([issuer, subject, clientId, patient, fhirUser, words]),
      'base64url',
    )
    holders.set(admitted, holder)
  }
  return holder
}
