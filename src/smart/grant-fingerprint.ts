import { hash } from 'node:crypto'
import type { Grant } from './grant.ts'

const holders = new WeakMap<Grant, string>()

/**
 * Whose grant it is, for what is bound to it, such as a paging link: the same for every token of one grant, so that
 * paging survives a refresh, and another for any other user, client, patient or set of scopes.
 */
export function grantFingerprint(grant: Grant | undefined): string {
  if (grant === undefined) return ''
  let holder = holders.get(grant)
  if (holder === undefined) {
    const { issuer, subject, clientId, patient, fhirUser, scopes } = grant
    const words = scopes.map(scope => scope.text).toSorted()
    holder = hash(
      'sha256',
      JSON.stringify([issuer, subject, clientId, patient, fhirUser, words]),
      'base64url',
    )
    holders.set(grant, holder)
  }
  return holder
}
