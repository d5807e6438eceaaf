import { type ActivityProblem, explainProblems } from '../auth/index.ts'
import type { Settings } from '../config/index.ts'
import { escapeLine } from '../core/index.ts'
import type { Store } from '../store/index.ts'
import { createExplainRequest } from './start/auth.ts'
import { readUserFilter } from './start/files.ts'

const MAX_LISTED = 1000
const MAX_PRINTED = 20

/** The problems of apps since a time, or of one app, oldest first. */
export async function findProblems(
  settings: Settings,
  store: Store,
  filter: { readonly since: number; readonly client?: string | undefined },
): Promise<readonly ActivityProblem[]> {
  const explainRequest = await createExplainRequest(settings, readUserFilter(settings))
  return explainProblems({ settings, store, explainRequest }, { ...filter, limit: MAX_LISTED })
}

/** Equal problems are printed once, with the time of the last, and of many the newest. */
export function formatProblems(problems: readonly ActivityProblem[]): string {
  const newestFirst = [...Map.groupBy(problems.toReversed(), formatProblem)]
  const distinct = newestFirst
    .toReversed()
    .map(([text, [last, ...others]]) =>
      others.length === 0 ? `${last?.at}  ${text}` : `${last?.at}  ${others.length + 1} times: ${text}`,
    )
  const older = distinct.length - MAX_PRINTED
  const lines = [
    ...(older > 0 ? [`${older} older problem${older === 1 ? '' : 's'}`] : []),
    ...distinct.slice(-MAX_PRINTED),
  ]
  return lines.map(line => `${line}\n`).join('')
}

function formatProblem(problem: ActivityProblem): string {
  const { status, kind, request, app, cause, reason, scope, action, compared = [] } = problem
  const lines = [
    `${status} ${request ?? kind}${app === undefined ? '' : ` (${app})`}`,
    `  ${cause}`,
    ...(reason === undefined ? [] : [`  The server said: ${reason}`]),
    ...compared.map(
      ({ name, sent = 'nothing', expected, origin }) =>
        `  ${name}: sent ${sent}, ${origin} ${expected.join(' or ') || 'nothing'}`,
    ),
    ...(scope === undefined ? [] : [`  Scopes of the token: ${scope}`]),
    ...(action === undefined ? [] : [`  What to do: ${action}`]),
  ]
  return lines.map(line => escapeLine(line)).join('\n')
}
