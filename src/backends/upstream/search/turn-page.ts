import { fail, type Interaction, type Params, paramsOfPage } from '../../../fhir/index.ts'
import { grantFingerprint } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import type { Spot } from './fetch-page.ts'
import { PAGE } from './pages.ts'

export type Paged = Extract<Interaction, { readonly params: Params }>

/** A search or history as it was first asked, and where it goes on. */
export interface Turned<I extends Paged> {
  readonly call: Call<I>
  readonly spot: Spot | undefined
}

/** Opens the page that a link names, for the grant that got it. What it goes on with is judged anew. */
export function turnPage<I extends Paged>(context: Context, call: Call<I>, of: string): Turned<I> | Problem {
  const { params } = call.interaction
  const page = params.find(([name]) => name === PAGE)
  if (!page) return { call, spot: undefined }
  const place = context.pages.open(page[1])
  const going = place && paramsOfPage(call.interaction, PAGE, place.params)
  if (!going || place.of !== of)
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read page: follow the link as it was given',
    })
  if (place.holder !== grantFingerprint(call.authenticated.grant)) return fail({ problem: 'out-of-reach' })
  const interaction: I = { ...call.interaction, params: going }
  const decision = call.authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  return { call: { ...call, interaction, access: decision.access }, spot: place.spot }
}
