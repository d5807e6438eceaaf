import type { FastifyReply } from 'fastify'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { LaunchProblem } from '../../oauth/launch/prepare.ts'
import type { Login } from '../../users/find-login.ts'
import { sendErrorPage, sendUnavailable } from './page-parts.ts'

export function sendLaunchProblem(
  reply: FastifyReply,
  context: AuthContext,
  login: Login,
  problem: LaunchProblem,
): FastifyReply {
  if (problem.kind === 'unavailable')
    return sendUnavailable(reply, context, login, { ...problem, tryAgain: paths.portal })
  const { status, title, text } = LAUNCH_PROBLEMS[problem.kind]
  return sendErrorPage(reply, context, {
    status,
    title,
    text: [text, 'No record was opened. Launch the app again from the patient list.'],
    actions: [{ href: paths.portal, text: 'Go to patients' }],
    login,
    isRecorded: true,
  })
}

export const LAUNCH_PROBLEMS = {
  'no-patient': { status: 400, title: 'No patient selected', text: 'Select a patient to launch an app.' },
  unreadable: { status: 400, title: 'Invalid launch', text: 'A form field was sent twice.' },
  'bad-options': { status: 400, title: 'Invalid options', text: 'The app was not launched.' },
  'unknown-app': {
    status: 400,
    title: 'This app cannot be launched',
    text: 'It is not registered for launches.',
  },
  'unknown-patient': {
    status: 404,
    title: 'Patient not found',
    text: 'The record was removed, or you do not have access to it.',
  },
  'unknown-encounter': {
    status: 404,
    title: 'Encounter not found',
    text: 'It was removed, or it belongs to another patient.',
  },
} as const
