import { type Html, html, renderDateTime } from '../../../web/ui/index.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import type { AuthUser } from '../../base/user.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { hasScope, keepUsableGrants, selectGrants, type UsableGrant } from '../../oauth/grants/grant.ts'
import { summarizeScopes } from '../../words/scopes.ts'
import { HOSPITAL_APP } from '../parts/apps.ts'

/** The grants of other people for a record that can be used now, the newest of each app and person. */
export interface GrantsOfOthers {
  readonly grants: readonly UsableGrant[]
  /** Whether all of them were read. */
  readonly isComplete: boolean
}

export async function findGrantsOfOthers(
  { store, rules, clock }: AuthContext,
  user: AuthUser,
  patient: string,
): Promise<GrantsOfOthers> {
  const rows = await selectGrants(store.db)
    .where('grant.patient_id', '=', patient)
    .where('grant.clinician_id', '!=', user.id)
    .where('revoked_at', 'is', null)
    .where('last_used_at', '>', clock() - LIFETIME.offlineRefresh)
    .orderBy('last_used_at', 'desc')
    .limit(LIMITS.homeGrants)
    .execute()
  const grants = await keepUsableGrants(store.db, rules, rows, clock())
  const ofOne = Map.groupBy(grants, grant => JSON.stringify([grant.client_id, grant.clinician_id]))
  return {
    grants: [...ofOne.values()].flatMap(([newest]) => newest ?? []),
    isComplete: rows.length < LIMITS.homeGrants,
  }
}

export function renderGrantsOfOthers({ grants, isComplete }: GrantsOfOthers): Html {
  const others = grants.slice(LIMITS.appsListed)
  return html`<h3 class="home__part field__label">Apps of other people with access now</h3>
${
  grants.length === 0
    ? html`<p class="home__part muted">Nobody else has allowed an app to use this record.</p>`
    : html`<ul class="visits">${grants.slice(0, LIMITS.appsListed).map(renderGrant)}</ul>`
}
${others.length > 0 && html`<details class="more home__part"><summary>${others.length} more</summary><ul class="visits">${others.map(renderGrant)}</ul></details>`}
${!isComplete && html`<p class="home__part small muted">There may be others, which were used earlier.</p>`}`
}

function renderGrant({ client_name, client_first_party, display_name, scope, ends_at }: UsableGrant): Html {
  const whose = client_first_party ? `${HOSPITAL_APP}, used by` : 'Allowed by'
  return html`<li class="home__app"><div><b>${client_name}</b><span class="sub">${whose} ${display_name}. ${summarizeScopes(scope, 'they')}. Until ${ends_at === undefined ? 'they end it' : renderDateTime(ends_at)}${hasScope(scope, 'offline_access') && ', also while they are away'}.</span></div></li>`
}
