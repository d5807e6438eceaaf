import { resolve } from 'node:path'
import { isSet, optional, required, several } from '../arguments.ts'
import { type Arguments, misuse } from '../command.ts'
import { checkJwksUrl, checkLaunchUrl, checkLogoUrl, checkRedirectUri } from './addresses.ts'
import { readPublicKeys } from './public-keys.ts'
import { checkScope, isForSystemsOnly } from './scope.ts'

/** How a client proves itself at the token endpoint. */
export type Proof =
  | { readonly kind: 'public' }
  | { readonly kind: 'secret' }
  | { readonly kind: 'jwks-url'; readonly url: string }
  /** The key set as JSON. */
  | { readonly kind: 'jwks'; readonly jwks: string }

/** A client as it was described on the command line, checked. */
export interface Registration {
  readonly id: string
  readonly name: string
  readonly description: string | undefined
  readonly logoUrl: string | undefined
  readonly redirectUris: readonly string[]
  readonly launchUrl: string | undefined
  readonly scope: string
  readonly proof: Proof
  readonly firstParty: boolean
}

/** The portal's own name on its tokens (contract 5.4): nobody else may have it. */
const RESERVED_ID = 'sallyport-portal'

export async function readRegistration(args: Arguments, cwd: string): Promise<Registration> {
  const id = checkId(required(args, 'id'))
  const scope = await checkScope(required(args, 'scope'))
  const proof = readProof(args, cwd)
  const redirectUris = [...new Set(several(args, 'redirect-uri').map(checkRedirectUri))]
  if (redirectUris.length === 0 && !isForSystemsOnly(scope)) {
    throw misuse('Missing --redirect-uri: only a client with nothing but system/ scopes needs none')
  }
  // SMART backend services: `system/` is only for clients that prove themselves.
  if (proof.kind === 'public' && /(^| )system\//.test(scope)) {
    throw misuse('Cannot use --public with system/ scopes: such a client must prove itself')
  }
  const launchUrl = optional(args, 'launch-url')
  const logoUrl = optional(args, 'logo-url')
  return {
    id,
    name: optional(args, 'name') ?? id,
    description: optional(args, 'description'),
    logoUrl: logoUrl === undefined ? undefined : checkLogoUrl(logoUrl),
    redirectUris,
    launchUrl: launchUrl === undefined ? undefined : checkLaunchUrl(launchUrl),
    scope,
    proof,
    firstParty: isSet(args, 'first-party'),
  }
}

function checkId(id: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(id)) {
    throw misuse('Cannot use --id: expected at most 200 printable characters without spaces')
  }
  if (id === RESERVED_ID) throw misuse(`Cannot use --id ${RESERVED_ID}: it is the portal's own`)
  return id
}

function readProof(args: Arguments, cwd: string): Proof {
  const url = optional(args, 'jwks-url')
  const file = optional(args, 'jwks-file')
  const given: readonly (Proof | undefined)[] = [
    isSet(args, 'public') ? { kind: 'public' } : undefined,
    isSet(args, 'secret') ? { kind: 'secret' } : undefined,
    url === undefined ? undefined : { kind: 'jwks-url', url: checkJwksUrl(url) },
    file === undefined ? undefined : { kind: 'jwks', jwks: readPublicKeys(resolve(cwd, file), file) },
  ]
  const [proof, second] = given.filter(item => item !== undefined)
  if (proof === undefined || second !== undefined) {
    throw misuse('Expected one of --public, --secret, --jwks-url and --jwks-file')
  }
  return proof
}
