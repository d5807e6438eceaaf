import { fail, type Interaction, type Params, paramsOfPage } from '../../../fhir/index.ts'
import { grantFingerprint } from '../../../smart/index.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import type { SqlValue } from '../repository/database.ts'
import { PAGE } from './pages.ts'

type Paged = Extract<Interaction, { readonly params: Params }>

/** A search or history as it was first asked, and where it goes on. */
export interface Turned<I extends Paged> {
  readonly call: Call<I>
  readonly after: readonly SqlValue[] | undefined
}

/**
 * Opens the page that a link names, for the grant that got it (attacks.md 14). What it goes on with is judged anew, as
 * if it had been asked in full.
 */
export function turnPage<I extends Paged>(context: Context, call: Call<I>, of: string): Turned<I> | Problem {
  const [page] = call.interaction.params.filter(([name]) => name === PAGE)
  if (!page) return { call, after: undefined }
  const place = context.pages.open(page[1])
  const params = place && paramsOfPage(call.interaction, PAGE, place.params)
  if (!params || place.of !== of)
    return fail({
      problem: 'bad-search',
      code: 'invalid',
      text: 'Cannot read page: follow the link as it was given',
    })
  if (place.holder !== grantFingerprint(call.authenticated.grant)) return fail({ problem: 'out-of-reach' })
  const interaction: I = { ...call.interaction, params }
  const decision = call.authenticated.decide(interaction)
  if (!decision.allowed) return fail({ problem: 'refused', refused: decision })
  return {
    call: { ...call, interaction, access: decision.access },
    after: place.after,
  }
}

/** The link to what comes after. */
export function nextLink(
  context: Context,
  { interaction, authenticated }: Call<Paged>,
  address: string,
  of: string,
  after: readonly SqlValue[],
): { readonly relation: 'next'; readonly url: string } {
  const holder = grantFingerprint(authenticated.grant)
  const page = context.pages.seal({ of, params: interaction.params, after, holder })
  return { relation: 'next', url: `${address}?${PAGE}=${page}` }
}
