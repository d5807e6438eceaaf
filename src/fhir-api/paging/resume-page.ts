import { type FhirProblem, fail, type Interaction, type Params, readPageParams } from '../../fhir/index.ts'
import { grantFingerprint } from '../../smart/index.ts'
import type { FhirRequest } from '../request.ts'
import type { Cursor, Pages } from './pages.ts'

export type Paged = Extract<Interaction, { readonly params: Params }>

/** A search or history as first requested, and where it goes on. */
export interface Resumed<I extends Paged> {
  readonly request: FhirRequest<I>
  readonly cursor: Cursor | undefined
}

/** Opens the page that a link names, for the grant that got it. The request that goes on is decided again. */
export function resumePage<I extends Paged>(
  { pages }: { readonly pages: Pages },
  request: FhirRequest<I>,
  path: string,
): Resumed<I> | FhirProblem {
  const link = request.interaction.params.find(([name]) => name === pages.parameter)
  if (!link) return { request, cursor: undefined }
  const page = pages.open(link[1])
  const params = page && readPageParams(request.interaction, pages.parameter, page.params)
  if (!params || page.path !== path)
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read page: follow the link as it was given',
    })
  if (page.holder !== grantFingerprint(request.authenticated.grant)) return fail({ problem: 'out-of-reach' })
  const interaction: I = { ...request.interaction, params }
  const decision = request.authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  return { request: { ...request, interaction, access: decision.access }, cursor: page.cursor }
}
