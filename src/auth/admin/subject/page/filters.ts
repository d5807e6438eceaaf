import { type Choice, type Html, html } from '../../../../web/ui/index.ts'
import type { AuthContext } from '../../../oauth/context.ts'

export interface FilterChoices {
  readonly users: readonly Choice[]
  readonly apps: readonly Choice[]
}

const OFFERED = 200

/** Suggestions for two fields. Other values can be typed. */
export async function findChoices({ store }: AuthContext): Promise<FilterChoices> {
  const [users, apps] = await Promise.all([
    store.db
      .selectFrom('clinician')
      .select(['username', 'display_name'])
      .orderBy('username')
      .limit(OFFERED)
      .execute(),
    store.db.selectFrom('client').select(['client_id', 'name']).orderBy('client_id').limit(OFFERED).execute(),
  ])
  return {
    users: users.map(row => [row.username, row.display_name]),
    apps: apps.map(row => [row.client_id, row.name]),
  }
}

export function renderInput(
  name: string,
  label: string,
  value: string,
  choices: readonly Choice[] = [],
  type: 'text' | 'date' = 'text',
): Html {
  return html`<p class="field"><label class="field__label" for="${name}">${label}</label><input class="input" id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="off" autocapitalize="none" spellcheck="false"${choices.length > 0 && html` list="${name}-choices"`}></p>${
    choices.length > 0 &&
    html`<datalist id="${name}-choices">${choices.map(([id, text]) => html`<option value="${id}">${text}</option>`)}</datalist>`
  }`
}
