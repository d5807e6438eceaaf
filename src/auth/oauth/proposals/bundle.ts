import { randomUUID } from 'node:crypto'
import { formatExact } from '../../../fhir/index.ts'
import type { Proposal } from '../../../proposals/index.ts'
import { type AuthUser, buildFhirUser } from '../../base/user.ts'
import { addMarks, makeTag } from './marks.ts'
import type { PresentState } from './present.ts'

const PARTICIPANT = 'http://terminology.hl7.org/CodeSystem/provenance-participant-type'

const OPERATIONS = { create: 'CREATE', update: 'UPDATE', patch: 'UPDATE', delete: 'DELETE' } as const

interface Signature {
  readonly proposal: Proposal
  readonly state: PresentState
  readonly user: AuthUser
  readonly assistant: { readonly id: string; readonly name: string }
  readonly settings: { readonly fhirBaseUrl: string; readonly issuerUrl: string }
  readonly now: number
}

/**
 * The change and its Provenance as one transaction. An update or a delete is bound to the version that was shown, a create to
 * the tag: sent twice, it writes once.
 */
export function buildTransaction(signature: Signature): string {
  const { proposal, state, settings } = signature
  const { type, id, action } = proposal.change
  const tag = makeTag(settings, proposal)
  const ifNoneExist = `_tag=${encodeURIComponent(`${tag.system}|${tag.code}`)}`
  const ifMatch = state.version
  const resource = state.after && addMarks(state.after, tag)
  const fullUrl = id === undefined ? `urn:uuid:${randomUUID()}` : undefined
  const change =
    action === 'create'
      ? { fullUrl, resource, request: { method: 'POST', url: type, ifNoneExist } }
      : action === 'delete'
        ? { request: { method: 'DELETE', url: `${type}/${id}`, ifMatch } }
        : { resource, request: { method: 'PUT', url: `${type}/${id}`, ifMatch } }
  const provenance = {
    resource: buildProvenance(signature, fullUrl ?? `${type}/${id}`),
    request: { method: 'POST', url: 'Provenance', ifNoneExist },
  }
  return formatExact({ resourceType: 'Bundle', type: 'transaction', entry: [change, provenance] })
}

/** Who has written it: the assistant as a contained Device, so that no other resource is needed, verified by the person. */
function buildProvenance(
  { proposal, state, user, assistant, settings, now }: Signature,
  written: string,
): object {
  const { change, patient } = proposal
  const { type, id, action, reason } = change
  const removed = action === 'delete' ? describeRemoved(settings, `${type}/${id}`, state.version) : undefined
  const ofPatient = patient === undefined ? [] : [{ reference: `Patient/${patient}` }]
  const own = removed ? [] : [{ reference: written }]
  const target = [...own, ...ofPatient.filter(({ reference }) => reference !== written)]
  const { system, code } = makeTag(settings, proposal)
  const source = { role: 'source', what: { identifier: { system, value: code }, display: 'Proposal' } }
  const agent = (role: string, reference: string) => ({
    type: { coding: [{ system: PARTICIPANT, code: role }] },
    who: { reference },
  })
  return {
    resourceType: 'Provenance',
    meta: { tag: [{ system, code }] },
    contained: [
      {
        resourceType: 'Device',
        id: 'assistant',
        identifier: [{ system: `${settings.issuerUrl}/clients`, value: assistant.id }],
        deviceName: [{ name: assistant.name, type: 'user-friendly-name' }],
      },
    ],
    // R4 wants a target. What is deleted cannot be one on every server.
    target: target.length > 0 ? target : [removed?.what],
    recorded: new Date(now).toISOString(),
    reason: [{ text: reason }],
    activity: {
      coding: [
        { system: 'http://terminology.hl7.org/CodeSystem/v3-DataOperation', code: OPERATIONS[action] },
      ],
    },
    agent: [
      agent('author', '#assistant'),
      agent(
        'verifier',
        buildFhirUser(user.fhirUserId, settings.fhirBaseUrl).slice(settings.fhirBaseUrl.length + 1),
      ),
    ],
    entity: [source, ...(removed ? [removed] : [])],
  }
}

function describeRemoved(
  { fhirBaseUrl }: Signature['settings'],
  reference: string,
  version: string | undefined,
) {
  const number = version?.replace(/^W\/|"/g, '')
  const value = `${fhirBaseUrl}/${reference}${number === undefined ? '' : `/_history/${number}`}`
  return {
    role: 'removal',
    what: { identifier: { system: 'urn:ietf:rfc:3986', value }, display: reference },
  }
}
