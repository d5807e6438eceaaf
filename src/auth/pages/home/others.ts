import { findPage, type KeptRecord } from '../../../audit/index.ts'
import { type Html, html } from '../../../web/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { User } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { keepUsableGrants, selectGrants, type UsableGrant } from '../../oauth/grants/grant.ts'
import { summarizeScopes } from '../consent/texts.ts'

/**
 * The grants of other people for a record that can be used now. No index has the patient of a grant, but the audit trail
 * has the grants of a record: the newest authorizations, and those with which somebody looked at it lately.
 */
export async function findGrantsOfOthers(
  { store, rules, clock }: AuthContext,
  user: User,
  patient: string,
  looks: readonly KeptRecord[],
): Promise<readonly UsableGrant[]> {
  const { records } = await findPage(store, {
    events: [{ kind: 'authorize' }],
    allowed: true,
    filedUnder: patient,
    limit: LIMITS.homeGrants,
  })
  const ids = [...new Set([...records, ...looks].flatMap(({ launch_id }) => launch_id ?? []))]
  if (ids.length === 0) return []
  const rows = await selectGrants(store.db)
    .where('grant.id', 'in', ids.slice(0, LIMITS.homeGrants))
    .where('patient_id', '=', patient)
    .where('grant.clinician_id', '!=', user.id)
    .where('revoked_at', 'is', null)
    .orderBy('last_used_at', 'desc')
    .execute()
  const grants = await keepUsableGrants(store.db, rules, rows, clock())
  const ofOne = Map.groupBy(grants, grant => JSON.stringify([grant.client_id, grant.clinician_id]))
  return [...ofOne.values()].flatMap(([newest]) => newest ?? [])
}

export function renderGrantsOfOthers(grants: readonly UsableGrant[]): Html {
  return html`<h3 class="home__part field__label">Apps of other people with access now</h3>
${
  grants.length === 0
    ? html`<p class="home__part muted">No app of another person is known to have access.</p>`
    : html`<ul class="visits">${grants
        .slice(0, LIMITS.appsListed)
        .map(
          grant =>
            html`<li class="home__app"><div><b>${grant.client_name}</b><span class="sub">Allowed by ${grant.display_name}. ${summarizeScopes(grant.scope, 'they')}.</span></div></li>`,
        )}</ul>`
}
<p class="home__part small muted">Staff may also use apps that open many records. Whatever they open is listed under “Who looked”.</p>`
}
