import type { FastifyReply } from 'fastify'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { LaunchProblem } from '../../oauth/launch/prepare.ts'
import type { Login } from '../../users/find-login.ts'
import { PAGE_REASONS } from '../../words/reasons.ts'
import { sendErrorPage, sendUnavailable } from './page-parts.ts'

export function sendLaunchProblem(
  reply: FastifyReply,
  context: AuthContext,
  login: Login,
  problem: LaunchProblem,
): FastifyReply {
  if (problem.reason === 'records-unavailable')
    return sendUnavailable(reply, context, login, { ...problem, tryAgain: paths.portal })
  const { status, title, text } = PAGES[problem.reason]
  return sendErrorPage(reply, context, {
    status,
    title,
    text: [text, 'No record was opened. Launch the app again from the patient list.'],
    actions: [{ href: paths.portal, text: 'Go to patients' }],
    login,
    isRecorded: true,
  })
}

const INVALID_OPTIONS = { status: 400, title: 'Invalid options', text: 'The app was not launched.' } as const

/** The error pages by their reasons. */
const PAGES = {
  'launch-patient-missing': makePage('launch-patient-missing', 'Select a patient to launch an app.'),
  'launch-form-repeated': makePage('launch-form-repeated', 'A form field was sent twice.'),
  'launch-option-invalid': INVALID_OPTIONS,
  'launch-encounter-missing': INVALID_OPTIONS,
  'launch-app-unknown': makePage('launch-app-unknown', 'It is not registered for launches.'),
  'launch-patient-unknown': makePage(
    'launch-patient-unknown',
    'The record was removed, or you do not have access to it.',
  ),
  'launch-encounter-unknown': makePage(
    'launch-encounter-unknown',
    'It was removed, or it belongs to another patient.',
  ),
} as const

function makePage(reason: LaunchProblem['reason'], text: string) {
  const { status, sentence } = PAGE_REASONS[reason]
  return { status, title: sentence, text }
}
