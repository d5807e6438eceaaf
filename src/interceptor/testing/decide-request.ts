import { parseInteraction, parseReference } from '../../fhir/index.ts'
import { type EnforcementPolicy, type Grant, parseScopes } from '../../smart/index.ts'
import { decide } from '../decision/decide.ts'
import type { Decision } from '../decision/decision.ts'
import { fhirBaseUrl } from './test-issuer.ts'

export interface TestDecisionContext {
  readonly scope: string
  readonly patient?: string
  readonly fhirUser?: string
  readonly policy?: Partial<EnforcementPolicy>
  readonly headers?: Readonly<Record<string, string>>
}

export const policy: EnforcementPolicy = {
  fhirBaseUrl,
  contexts: ['patient', 'user', 'system'],
  searchPermission: 'r',
}

export function makeGrant({ scope, patient, fhirUser }: TestDecisionContext): Grant {
  const user = fhirUser === undefined ? undefined : parseReference(fhirUser, fhirBaseUrl)
  return {
    scopes: parseScopes(scope),
    ...(patient !== undefined && { patient }),
    ...(user && { fhirUser: user }),
  }
}

/** The decision on a request line such as `GET /Condition?patient=1`. */
export function decideRequest(line: string, context: TestDecisionContext): Decision {
  const [method = '', url = ''] = line.split(' ')
  const [path = '', query = ''] = url.split('?')
  const form = path.endsWith('/_search') ? { 'content-type': 'application/x-www-form-urlencoded' } : {}
  const interaction = parseInteraction({
    method,
    path,
    query,
    headers: { ...form, ...context.headers },
    form: '',
  })
  if (interaction.kind === 'misunderstood') return { allowed: false, refusal: interaction }
  return decide(interaction, makeGrant(context), { ...policy, ...context.policy })
}
