import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { line, send } from "../../api";
import type { AddedReceiver, NewsEvent } from "../../types";
import { Card } from "../Card";
import { Field } from "../Field";
import { receiverRequest, type Kind, type Whose } from "./receiverRequest";

interface Props {
  mails: boolean;
  events: NewsEvent[];
  admin: boolean;
  onAdded: (made: AddedReceiver) => void;
}

/** The form for a new receiver. Members get mail about their own runs; admins choose the kind and whose runs. */
export function NewReceiver({ mails, events, admin, onAdded }: Props): JSX.Element {
  const [kind, setKind] = useState<Kind>(mails ? "mail" : "json");
  const [whose, setWhose] = useState<Whose>(mails ? "own" : "all");
  const [of, setOf] = useState("");
  const [address, setAddress] = useState("");
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const [error, setError] = useState<string | null>(null);
  const choose = (next: Kind): void => {
    setKind(next);
    if (next !== "mail" && whose === "own") setWhose("all");
  };
  const add = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      onAdded(await send<AddedReceiver>("POST", "/news", receiverRequest({ kind, whose, of, address, name, chosen })));
      setAddress("");
      setName("");
      setError(null);
    } catch (refused) {
      setError(line(refused));
    }
  };
  const toggle = (event: string): void =>
    setChosen(chosen.includes(event) ? chosen.filter((each) => each !== event) : [...chosen, event]);
  return (
    <Card title="Send news to">
      <form class="member" onSubmit={(event) => void add(event)}>
        <div class="fields">
          {admin && (
            <Field label="By" hint={mails ? undefined : "mail needs a mail server: mlcd service --mail-file"}>
              <select value={kind} onChange={(event) => choose(event.currentTarget.value as Kind)}>
                {mails && <option value="mail">mail</option>}
                <option value="json">webhook</option>
                <option value="slack">Slack</option>
              </select>
            </Field>
          )}
          <Field
            label="Address"
            hint={kind === "mail" ? "such as ada@example.org" : "https://…; it is not shown again"}
            error={error}
          >
            <input
              type={kind === "mail" ? "email" : "url"}
              required
              autocomplete={kind === "mail" ? "email" : "off"}
              spellcheck={false}
              value={address}
              onInput={(event) => setAddress(event.currentTarget.value)}
            />
          </Field>
          {admin && (
            <Field label="About">
              <select value={whose} onChange={(event) => setWhose(event.currentTarget.value as Whose)}>
                {kind === "mail" && <option value="own">my runs</option>}
                <option value="all">all runs</option>
                <option value="team">a team's runs</option>
                <option value="member">a member's runs</option>
              </select>
            </Field>
          )}
          {(whose === "team" || whose === "member") && (
            <Field label={whose === "team" ? "Team" : "Member"}>
              <input type="text" required spellcheck={false} value={of} onInput={(event) => setOf(event.currentTarget.value)} />
            </Field>
          )}
          {admin && (
            <Field label="Name" hint="optional">
              <input type="text" maxLength={60} value={name} onInput={(event) => setName(event.currentTarget.value)} />
            </Field>
          )}
        </div>
        <fieldset>
          <legend>{chosen.length === 0 ? "All events; choose some to get only those" : "Only these events"}</legend>
          <div class="chips">
            {events.map((event) => (
              <button
                key={event.name}
                type="button"
                class="chip"
                aria-pressed={chosen.includes(event.name)}
                title={event.when}
                onClick={() => toggle(event.name)}
              >
                {event.name.replace("_", " ")}
              </button>
            ))}
          </div>
          {events
            .filter(({ name }) => chosen.includes(name))
            .map((event) => (
              <p key={event.name} class="hint">
                {event.name.replace("_", " ")}: {event.when}
              </p>
            ))}
        </fieldset>
        <button type="submit" class="button primary" disabled={address.trim() === ""}>
          Add
        </button>
      </form>
    </Card>
  );
}
