import { Type } from 'typebox'
import { Members } from '../../endpoint/index.ts'
import type { Proposal } from '../../proposals/index.ts'
import { mayPropose } from '../grants.ts'
import { OUTCOME_CHARACTERS } from '../limits.ts'
import { shorten } from '../rows.ts'
import { defineTool } from '../tool.ts'

export const listProposals = defineTool({
  name: 'list_proposals',
  title: 'List your proposals',
  description: 'Lists what you have proposed for this record, newest first, and what became of it.',
  input: Members({}),
  output: Members({
    proposals: Type.Array(
      Members({
        proposal: Type.String(),
        action: Type.String(),
        reference: Type.String(),
        state: Type.String(),
        version: Type.Optional(Type.String()),
        reason: Type.Optional(Type.String({ description: 'Why the person rejected it' })),
      }),
    ),
  }),
  isUsableBy: mayPropose,
  async call({ proposals }) {
    const rows = (await proposals.list()).map(describe)
    const text = rows.map(({ proposal, action, reference, state, version, reason }) =>
      [
        `${proposal}: ${action} ${reference}`,
        version === undefined ? state : `${state} as version ${version}`,
        reason,
      ]
        .filter(it => it !== undefined)
        .join(' | '),
    )
    return { content: { proposals: rows }, text: text.join('\n') || 'You have proposed nothing.' }
  },
})

function describe({ id, change, state, outcome }: Proposal) {
  const { type, id: resource } = change
  const { reference = resource === undefined ? type : `${type}/${resource}`, version, reason } = outcome
  return {
    proposal: id,
    action: change.action,
    reference,
    // That it is being written now, or that nobody knows it yet, is not decided.
    state: state === 'signing' ? 'open' : state,
    ...(version !== undefined && { version: version.replace(/^W\/|"/g, '') }),
    ...(reason !== undefined && { reason: shorten(reason, OUTCOME_CHARACTERS) }),
  }
}
