import { Type } from 'typebox'
import { isFailure, removeControls } from '../../core/index.ts'
import { Members } from '../../endpoint/index.ts'
import { failFor, formatExact, isResourceType, parseReference } from '../../fhir/index.ts'
import { PROPOSAL_CHARACTERS, type ProposedChange, REASON_CHARACTERS } from '../../proposals/index.ts'
import { mayPropose } from '../grants.ts'
import { type Call, defineTool, failCall, type ToolFault } from '../tool.ts'

type Action = ProposedChange['action']

const ACTIONS = ['create', 'update', 'patch', 'delete'] as const satisfies readonly Action[]

export const proposeChange = defineTool({
  name: 'propose_change',
  title: 'Propose a change',
  description:
    'Proposes a change of the record. Nothing is written: the person reads it, and signs or rejects it later. list_proposals tells the outcome. Prefer patch to update.',
  input: Members({
    action: Type.Enum([...ACTIONS]),
    reference: Type.Optional(Type.String({ description: 'Of the resource to change or delete' })),
    type: Type.Optional(Type.String({ description: 'Of the resource to create' })),
    resource: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), { description: 'To create, or the whole new content' }),
    ),
    patch: Type.Optional(
      Type.Array(Type.Record(Type.String(), Type.Unknown()), { description: 'JSON Patch (RFC 6902)' }),
    ),
    reason: Type.String({
      minLength: 1,
      maxLength: REASON_CHARACTERS,
      description: 'For the person: why, and from which facts',
    }),
  }),
  output: Members({ proposal: Type.String(), state: Type.String(), until: Type.String() }),
  keeps: true,
  isUsableBy: mayPropose,
  async call(call, given) {
    const target = readTarget(call, given)
    if (isFailure(target)) return target
    const { action, type, id, body } = target
    const content = body === undefined ? undefined : formatExact(body)
    if (content !== undefined && content.length > PROPOSAL_CHARACTERS)
      return failCall(`At most ${PROPOSAL_CHARACTERS} characters. Propose a smaller change, or a patch.`)
    const excess = await call.proposals.findExcess()
    if (excess) return failExcess(excess.most)
    const seen = await call.tryChange({ action, type, ...(id !== undefined && { id }), body })
    if (isFailure(seen)) return seen
    const kept = await call.proposals.add({
      action,
      type,
      ...(id !== undefined && { id }),
      ...(seen.version !== undefined && { version: seen.version }),
      ...(content !== undefined && { content }),
      reason: removeControls(given.reason),
    })
    if (isFailure(kept)) return failExcess(kept.most)
    const until = new Date(kept.expiresAt).toISOString()
    return {
      content: { proposal: kept.id, state: 'open', until },
      text: `Proposal ${kept.id}: open until ${until}. Nothing was written. Tell the person to open ${kept.url} and sign or reject it.`,
    }
  },
})

interface Target {
  readonly action: Action
  readonly type: string
  readonly id?: string
  /** Exact JSON. */
  readonly body: unknown
}

interface Given {
  readonly action: Action
  readonly reference?: string
  readonly type?: string
  readonly resource?: object
  readonly patch?: readonly object[]
}

function readTarget(call: Call, { action, reference, type, resource, patch }: Given): Target | ToolFault {
  const needed = action === 'patch' ? 'patch' : action === 'delete' ? undefined : 'resource'
  if (needed === 'resource' && !resource) return failCall(`Send the resource to ${action} in resource.`)
  if (needed === 'patch' && !patch)
    return failCall('Send a JSON Patch in patch, such as [{"op": "replace", …}].')
  if ((resource && needed !== 'resource') || (patch && needed !== 'patch'))
    return failCall(
      `${action} takes ${needed === undefined ? 'neither resource nor patch' : `only ${needed}`}.`,
    )
  // With the digits of decimals.
  const body = needed && call.readExact()[needed]
  if (action === 'create') {
    if (type === undefined || !isResourceType(type) || reference !== undefined)
      return failCall('To create, send the FHIR R4 resource type in type, and no reference.')
    return { action, type, body }
  }
  const found = reference === undefined ? undefined : parseReference(reference, call.baseUrl)
  if (!found || type !== undefined)
    return failCall(`To ${action}, send a reference such as Condition/123, and no type.`)
  return { action, type: found.type, id: found.id, body }
}

function failExcess(most: number): ToolFault {
  return failCall(
    `There are ${most} open proposals, which is the most. Ask the person to sign or reject some of them first.`,
    failFor('proposals-too-many', { most }),
  )
}
