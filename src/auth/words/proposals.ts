import type { StatusWords } from './reason.ts'

const NOTHING = 'Nothing was written.'
const OPEN_AGAIN = 'Open the proposal again, and read it as it is now.'

/** Signing or rejecting a change that an assistant proposes. */
export const PROPOSALS = {
  'proposal-unknown': {
    status: 404,
    sentence: 'There is no such proposal.',
    cause: 'The proposal is for another account, or it was removed some time after it ended.',
    remedy: 'Open the list of proposals.',
  },
  'proposal-decided': {
    status: 409,
    sentence: 'This proposal is not open any more.',
    cause: 'The proposal was already signed, rejected or withdrawn, or it has expired.',
    remedy: 'Open the proposal to see what became of it.',
  },
  'proposal-changed': {
    status: 409,
    sentence: `The record has changed since you opened this page. ${NOTHING}`,
    cause: 'What was to be signed is not what the person has seen: the record was changed in between.',
    remedy: OPEN_AGAIN,
  },
  'proposal-record-hidden': {
    status: 403,
    sentence: `You cannot open this record: it does not exist any more, or you have lost access to it. ${NOTHING}`,
    cause: 'The FHIR server does not show the resource or the patient of the proposal to this person now.',
    remedy: 'Reject the proposal, or ask an administrator about access to the patient.',
  },
  'proposal-not-permitted': {
    status: 403,
    sentence: `Your account may not make this change. ${NOTHING}`,
    cause: 'The FHIR server refused the change by the rights of the person at the time of signing.',
    remedy: 'Reject the proposal, or ask an administrator about your access.',
  },
  'proposal-not-accepted': {
    status: 422,
    sentence: `The FHIR server does not accept this change. ${NOTHING}`,
    cause: 'The FHIR server refused the content of the change.',
    remedy: 'Reject the proposal, and tell the assistant what to change.',
  },
  'proposal-patch-unusable': {
    status: 409,
    sentence: `The change does not fit the record as it is now. ${NOTHING}`,
    cause: 'The patch of the assistant cannot be applied to the current version of the resource.',
    remedy: 'Reject the proposal, so that the assistant can propose another one.',
  },
  'proposal-agents-off': {
    status: 403,
    sentence: `Assistants are switched off. ${NOTHING}`,
    cause: 'An administrator switched all assistants off, or the endpoint of assistants is not enabled.',
    remedy: 'Reject the proposal, or wait until assistants are switched on.',
  },
  'proposal-app-ended': {
    status: 403,
    sentence: `The assistant is disabled or was removed. ${NOTHING}`,
    cause: 'The app of the proposal is not registered any more, or an administrator disabled it.',
    remedy: 'Reject the proposal.',
  },
  'proposal-outcome-unknown': {
    status: 503,
    sentence: 'It is not known yet whether the change was written.',
    cause: 'The FHIR server did not answer in time, or with an error of its own.',
    remedy: 'Open the proposal again in two minutes: it then shows whether the change was written.',
  },
  'proposal-reason-too-long': {
    status: 400,
    sentence: 'The reason has more than {most} characters.',
    cause: 'The reason of a rejection has more than {most} characters.',
    remedy: 'Send a shorter reason.',
  },
} as const satisfies Readonly<Record<string, StatusWords>>
