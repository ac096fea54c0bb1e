--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: drizzle; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA drizzle;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: __drizzle_migrations; Type: TABLE; Schema: drizzle; Owner: -
--

CREATE TABLE drizzle.__drizzle_migrations (
    id integer NOT NULL,
    hash text NOT NULL,
    created_at bigint
);


--
-- Name: __drizzle_migrations_id_seq; Type: SEQUENCE; Schema: drizzle; Owner: -
--

CREATE SEQUENCE drizzle.__drizzle_migrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


--
-- Name: __drizzle_migrations_id_seq; Type: SEQUENCE OWNED BY; Schema: drizzle; Owner: -
--

ALTER SEQUENCE drizzle.__drizzle_migrations_id_seq OWNED BY drizzle.__drizzle_migrations.id;


--
-- Name: api_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_keys (
    id text NOT NULL COLLATE pg_catalog."C",
    organization_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    digest bytea NOT NULL,
    trust text COLLATE pg_catalog."C",
    surfaces integer NOT NULL,
    resources integer NOT NULL,
    environments integer NOT NULL,
    projects text COLLATE pg_catalog."C",
    expires_at bigint,
    revoked_at bigint,
    created_at bigint NOT NULL,
    grant_seal bytea NOT NULL,
    CONSTRAINT api_keys_environments_rule CHECK (((environments >= 1) AND (environments <= 7))),
    CONSTRAINT api_keys_resources_rule CHECK (((resources >= 0) AND (resources <= 31))),
    CONSTRAINT api_keys_surfaces_rule CHECK (((surfaces >= 1) AND (surfaces <= 7)))
);


--
-- Name: audit_checkpoints; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_checkpoints (
    lane text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    mac bytea NOT NULL,
    seal bytea NOT NULL
);


--
-- Name: audit_checkpoints_signed; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_checkpoints_signed (
    size bigint NOT NULL,
    root bytea NOT NULL,
    at bigint NOT NULL,
    note text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_cosignatures; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_cosignatures (
    size bigint NOT NULL,
    witness text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    line text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
)
PARTITION BY RANGE (at);


--
-- Name: audit_entries; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.audit_entries AS
 SELECT audit_segments.lane,
    ((audit_segments.first_seq + numbered.n) - 1) AS seq,
    audit_segments.at,
    (parsed.texts ->> ((numbered.entry ->> 0))::integer) AS actor_type,
    (parsed.texts ->> ((numbered.entry ->> 1))::integer) AS actor,
        CASE (parsed.texts ->> ((numbered.entry ->> 0))::integer)
            WHEN 'key'::text THEN (parsed.texts ->> ((numbered.entry ->> 1))::integer)
            ELSE NULL::text
        END AS key_id,
    (parsed.texts ->> ((numbered.entry ->> 2))::integer) AS organization_id,
    (parsed.texts ->> ((numbered.entry ->> 3))::integer) AS organization,
    (parsed.texts ->> ((numbered.entry ->> 4))::integer) AS project_id,
    (parsed.texts ->> ((numbered.entry ->> 5))::integer) AS project,
    (parsed.texts ->> ((numbered.entry ->> 6))::integer) AS environment,
    (parsed.texts ->> ((numbered.entry ->> 7))::integer) AS action,
    ((segment.names -> ((numbered.entry ->> 10))::integer))::text AS names,
    json_array_length((segment.names -> ((numbered.entry ->> 10))::integer)) AS count,
    ((segment.names -> ((numbered.entry ->> 12))::integer))::text AS added,
    ((segment.names -> ((numbered.entry ->> 13))::integer))::text AS changed,
    ((segment.names -> ((numbered.entry ->> 14))::integer))::text AS deleted,
    (numbered.entry ->> 11) AS request_id,
    (parsed.texts ->> ((numbered.entry ->> 8))::integer) AS client_address,
    (parsed.texts ->> ((numbered.entry ->> 9))::integer) AS user_agent,
        CASE (parsed.texts ->> ((numbered.entry ->> 0))::integer)
            WHEN 'trust'::text THEN (parsed.texts ->> ((numbered.entry ->> 1))::integer)
            ELSE NULL::text
        END AS trust_id,
        CASE (parsed.texts ->> ((numbered.entry ->> 0))::integer)
            WHEN 'trust'::text THEN (parsed.texts ->> ((numbered.entry ->> 15))::integer)
            ELSE NULL::text
        END AS token,
        CASE (parsed.texts ->> ((numbered.entry ->> 0))::integer)
            WHEN 'person'::text THEN COALESCE((parsed.texts ->> ((numbered.entry ->> 15))::integer), '"os"'::text)
            ELSE NULL::text
        END AS actor_from
   FROM public.audit_segments,
    LATERAL ( SELECT (audit_segments.texts)::jsonb AS texts
         OFFSET 0) parsed,
    LATERAL json_to_record((audit_segments.entries)::json) segment(names json, entries jsonb),
    LATERAL jsonb_array_elements(segment.entries) WITH ORDINALITY numbered(entry, n);


--
-- Name: audit_exceptions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_exceptions (
    subject text NOT NULL COLLATE pg_catalog."C",
    recorded text NOT NULL COLLATE pg_catalog."C",
    found text NOT NULL COLLATE pg_catalog."C",
    at bigint NOT NULL,
    seal bytea NOT NULL
);


--
-- Name: audit_heads; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_heads (
    lane text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    roster text COLLATE pg_catalog."C",
    seal bytea
);


--
-- Name: audit_leaves; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_leaves (
    leaf bigint NOT NULL,
    lane text NOT NULL COLLATE pg_catalog."C",
    last_seq bigint NOT NULL,
    hashes bytea NOT NULL
);


--
-- Name: audit_segments_2026_11; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2026_11 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2026_12; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2026_12 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_01; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_01 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_02; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_02 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_03; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_03 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_04; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_04 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_2027_05; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_2027_05 (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_segments_default; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_segments_default (
    lane text NOT NULL COLLATE pg_catalog."C",
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    at bigint NOT NULL,
    mac bytea NOT NULL,
    texts text NOT NULL COLLATE pg_catalog."C",
    entries text NOT NULL COLLATE pg_catalog."C"
);


--
-- Name: audit_signers; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.audit_signers (
    generation integer NOT NULL,
    public_key bytea NOT NULL,
    created_at bigint NOT NULL,
    root_id text NOT NULL COLLATE pg_catalog."C",
    wrapped bytea NOT NULL
);


--
-- Name: data_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.data_keys (
    project_id text NOT NULL COLLATE pg_catalog."C",
    generation integer NOT NULL,
    root_id text NOT NULL COLLATE pg_catalog."C",
    wrapped bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT data_keys_generation_rule CHECK ((generation >= 1))
);


--
-- Name: file_contents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.file_contents (
    id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    size integer NOT NULL,
    generation integer NOT NULL,
    sealed bytea NOT NULL
);
ALTER TABLE ONLY public.file_contents ALTER COLUMN sealed SET STORAGE EXTERNAL;


--
-- Name: key_uses; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.key_uses (
    key_id text NOT NULL COLLATE pg_catalog."C",
    last_used_at bigint NOT NULL
);


--
-- Name: organizations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.organizations (
    id text NOT NULL COLLATE pg_catalog."C",
    slug text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    plan text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    seal bytea,
    CONSTRAINT organizations_plan_rule CHECK ((plan = ANY (ARRAY['free'::text, 'pro'::text]))),
    CONSTRAINT organizations_slug_rule CHECK ((slug ~ '^[a-z0-9][a-z0-9-]{0,63}$'::text))
);


--
-- Name: projects; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.projects (
    id text NOT NULL COLLATE pg_catalog."C",
    organization_id text NOT NULL COLLATE pg_catalog."C",
    slug text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    variable_counts text NOT NULL COLLATE pg_catalog."C",
    account_counts text NOT NULL COLLATE pg_catalog."C",
    file_counts text NOT NULL COLLATE pg_catalog."C",
    changed_at text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    environments integer DEFAULT 7 NOT NULL,
    CONSTRAINT projects_slug_rule CHECK ((slug ~ '^[a-z0-9][a-z0-9-]{0,63}$'::text))
);


--
-- Name: rosters; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.rosters (
    id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    listing text NOT NULL COLLATE pg_catalog."C",
    mac bytea NOT NULL
);


--
-- Name: set_versions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.set_versions (
    project_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    environment text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    names text NOT NULL COLLATE pg_catalog."C",
    mac bytea NOT NULL,
    generation integer,
    listing_mac bytea,
    listing text COLLATE pg_catalog."C",
    sealed bytea
);
ALTER TABLE ONLY public.set_versions ALTER COLUMN sealed SET STORAGE EXTERNAL;


--
-- Name: sets; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sets (
    project_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    environment text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    generation integer NOT NULL,
    listing_mac bytea NOT NULL,
    listing text NOT NULL COLLATE pg_catalog."C",
    sealed bytea,
    CONSTRAINT sets_environment_rule CHECK ((environment = ANY (ARRAY['development'::text, 'staging'::text, 'production'::text]))),
    CONSTRAINT sets_kind_rule CHECK ((kind = ANY (ARRAY['variables'::text, 'accounts'::text, 'files'::text])))
);
ALTER TABLE ONLY public.sets ALTER COLUMN listing SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.sets ALTER COLUMN sealed SET STORAGE EXTERNAL;


--
-- Name: system_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.system_keys (
    purpose text NOT NULL COLLATE pg_catalog."C",
    root_id text NOT NULL COLLATE pg_catalog."C",
    wrapped bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT system_keys_rule CHECK ((purpose = ANY (ARRAY['pepper'::text, 'grant'::text, 'audit'::text, 'listing'::text])))
);


--
-- Name: variable_requests; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.variable_requests (
    id text NOT NULL COLLATE pg_catalog."C",
    organization_id text NOT NULL COLLATE pg_catalog."C",
    project_id text NOT NULL COLLATE pg_catalog."C",
    environment text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    reason text NOT NULL COLLATE pg_catalog."C",
    key_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    status text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    decided_at bigint,
    decided_by text COLLATE pg_catalog."C",
    decision_reason text COLLATE pg_catalog."C",
    CONSTRAINT variable_requests_status_rule CHECK ((status = ANY (ARRAY['pending'::text, 'approved'::text, 'rejected'::text])))
);


--
-- Name: audit_segments_2026_11; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2026_11 FOR VALUES FROM ('1793491200000') TO ('1796083200000');


--
-- Name: audit_segments_2026_12; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2026_12 FOR VALUES FROM ('1796083200000') TO ('1798761600000');


--
-- Name: audit_segments_2027_01; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_01 FOR VALUES FROM ('1798761600000') TO ('1801440000000');


--
-- Name: audit_segments_2027_02; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_02 FOR VALUES FROM ('1801440000000') TO ('1803859200000');


--
-- Name: audit_segments_2027_03; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_03 FOR VALUES FROM ('1803859200000') TO ('1806537600000');


--
-- Name: audit_segments_2027_04; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_04 FOR VALUES FROM ('1806537600000') TO ('1809129600000');


--
-- Name: audit_segments_2027_05; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_2027_05 FOR VALUES FROM ('1809129600000') TO ('1811808000000');


--
-- Name: audit_segments_default; Type: TABLE ATTACH; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments ATTACH PARTITION public.audit_segments_default DEFAULT;


--
-- Name: __drizzle_migrations id; Type: DEFAULT; Schema: drizzle; Owner: -
--

ALTER TABLE ONLY drizzle.__drizzle_migrations ALTER COLUMN id SET DEFAULT nextval('drizzle.__drizzle_migrations_id_seq'::regclass);


--
-- Data for Name: __drizzle_migrations; Type: TABLE DATA; Schema: drizzle; Owner: -
--

INSERT INTO drizzle.__drizzle_migrations VALUES (1, 'b8395272e6b38f9757b0d04d949c6af21217b5d55b17e6ccd5e8cc7a44b23a50', 1795321605516);
INSERT INTO drizzle.__drizzle_migrations VALUES (2, 'e8b42c797413e055577245a23e160fd0c907eca2416f50a5aca70aa50e466551', 1795399892868);
INSERT INTO drizzle.__drizzle_migrations VALUES (3, 'd87872303b10ee99a3cc5bdb71e670e6365d1562358d8a459b7a64fa3217cf5a', 1795435217418);
INSERT INTO drizzle.__drizzle_migrations VALUES (4, 'c3e8474da9724ee8ac90803a7b29ef0d4e7e463d1676ef94736fbd11892b660a', 1795604093546);
INSERT INTO drizzle.__drizzle_migrations VALUES (5, '287517c96fbbb341a8baf48df64064e9f54ec79a40c131c4f860b675378eb9db', 1795606855113);
INSERT INTO drizzle.__drizzle_migrations VALUES (6, '2628c8025018afa8506ce51fe789f07912c58a72f5e30d8f66c20e16eb728084', 1795616263663);
INSERT INTO drizzle.__drizzle_migrations VALUES (7, '3b8865fc246cfd866e36edc6723d6c4b28730d203aabc73a5521cf87193244c7', 1795631282452);
INSERT INTO drizzle.__drizzle_migrations VALUES (8, '85436f606dc7d66a7f1c87bc5f51fc13a3473c1678658bfb8030280e326df238', 1795635616933);


--
-- Data for Name: api_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.api_keys VALUES ('01a2149d-df8e-71ff-b4cf-e32ffa80b16f', '01a2149d-da69-7268-86d4-d64238112f33', 'ci', '\x1d065d309b33e0c5df2a7ae5150e20994564bb4386664ffc9597bea7e5e2b701', NULL, 1, 15, 7, NULL, NULL, NULL, 1795642220430, '\x9c3247874fb04204f8f6c178b521e9427a092816f71ee5c0b0ded23d9b46e35c');


--
-- Data for Name: audit_checkpoints; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_checkpoints_signed; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_checkpoints_signed VALUES (9, '\x19bcd3cf3c8557ca4b859b484ee2107f569e012e0120dd476b0f9fa057e6970b', 1795642221159, 'keyhole/da13bddad373dafe
9
GbzTzzyFV8pLhZtITuIQf1aeAS4BIN1Haw+foFfmlws=

— keyhole/da13bddad373dafe pAt3WgVJIf449gVcj57ejEQe5upqvZ3sxL7Ne47p3TNT7iE97FYm+c7bzTzLiybOkkNY8oqPh/7uBzpUC3rr9ssPTwQ=
');


--
-- Data for Name: audit_cosignatures; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_exceptions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_heads; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_heads VALUES ('commands', 9, 1795642220681, '\xdb47dac6b24c4528947ba75272e33909e5b9cbcfa52cc0d3e29f6a1e46d4b533', '01a2149d-e084-7368-bd4b-03b6d0fdd0ff', '\x62374032481e774ccf3739cc24c5d7f3ffddeb62ffee4d31eba5388e664af6dd');


--
-- Data for Name: audit_leaves; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_leaves VALUES (0, 'commands', 1, '\xb56ef3cb93867505d5874c2b873a8afaaa81cbdd39c70e8d9893987e9f7bd101');
INSERT INTO public.audit_leaves VALUES (1, 'commands', 2, '\xe14c181bb6ac89b9f7344b90da86dac67d5f3592af9878056be320c3efbacecfb38435ec216cb7cb4f24aec1f0e6204b338971f07af8c478029c8c58669cd6fe');
INSERT INTO public.audit_leaves VALUES (2, 'commands', 3, '\xa84ecad6c63e6a488b4eade36610bd10ff52832c3642a232e84d24c9582f36ac');
INSERT INTO public.audit_leaves VALUES (3, 'commands', 4, '\x13810227cc34bef9e440c3a86447e99d51c0eeae7b7358320f95cf11d8f9ff63ba435b04d94f501d4aee3bf6d524b48fb2a6cf5f72594affd6bbf887846de369faa151fff747217c129b80dc55b9600d70330254c275f4d9724053af3d18f10b');
INSERT INTO public.audit_leaves VALUES (4, 'commands', 5, '\x54d74948ce05aea275f782c2a7d344e9c7dfdb638f3490d530b028330d13704c');
INSERT INTO public.audit_leaves VALUES (5, 'commands', 6, '\x5e1ed69b85d28d06379010c6f12fb345d5a0277435c0a51fc829df8e4f73125b8f297fa420eac492200a9baa57ca8a37ed21cbc01f65bb1aedb9a11cff207e79');
INSERT INTO public.audit_leaves VALUES (6, 'commands', 7, '\x350fd8bccd9e7a28596914b3c305f784e1d7469951fb6699145011eb98b77730');
INSERT INTO public.audit_leaves VALUES (7, 'commands', 8, '\xada48ced134163632c47e9c1440981d3f17fab3ac6247c46c436a57bd2ddcc737b26d08d94c1cd2af0afd64e3ce92845f454f94baa43e41e20a1bbd4b4b924a5f6d88238716aae8c0b2b18b0f5d7a0da29e75c660076dea74c5bb02c75c246d6612dda7892d9b323d7f01c37e04576bbe29974c9f5bde61d81f211bf36372e5d');
INSERT INTO public.audit_leaves VALUES (8, 'commands', 9, '\xc6d7af0a6ee1562599e4aae5ba1bd3ba764b6e1c711656b20e96a2e475fd19c1');


--
-- Data for Name: audit_segments_2026_11; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 1, 1, 1795642219135, '\x66b775bb1270c14cf0818969edeb0003fe8b8b832c3eeb24601e5d862f00a364', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","","organization.create"]', '{"names":[[]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 2, 2, 1795642219297, '\xbde921548d6c6b3a7e1b3a268d77bfdb4980dc6e57b89df46f98603e63c6170c', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","01a2149d-dafd-70e8-9365-3a5a348e0ed6","web","project.create",""]', '{"names":[[]],"entries":[[0,1,2,3,4,5,null,6,7,7,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 3, 3, 1795642219501, '\x184736f2125163060f27d44d48537c2a305effd355dea8a19a3468a4ecc61ab6', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","01a2149d-dafd-70e8-9365-3a5a348e0ed6","web","production","variables.write",""]', '{"names":[["TOKEN"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1,null,2]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 4, 4, 1795642219714, '\x884ac8bf1815638c1fc63ce05b04159d84c44bfd9259ca2d35a16f30fc26b743', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","01a2149d-dafd-70e8-9365-3a5a348e0ed6","web","production","variables.write",""]', '{"names":[["TOKEN"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",1,0,1,null,3]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 5, 5, 1795642220029, '\xfe64e14b4e7efd03ca947b740226b61686dc652d62f4b11a20d549b8da9261e9', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","01a2149d-dafd-70e8-9365-3a5a348e0ed6","web","production","accounts.write",""]', '{"names":[["mail"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1,null,2]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 6, 6, 1795642220334, '\xf6136edc317c2d65a790d47555d1640f308e7c9f44030f78343429a40d4bf2bd', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","01a2149d-dafd-70e8-9365-3a5a348e0ed6","web","production","files.write",""]', '{"names":[["config/f"],[]],"entries":[[0,1,2,3,4,5,6,7,8,8,0,"",0,1,1,null,2]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 7, 7, 1795642220440, '\xea6827435f4b58d9208effd4dd62f132a4d414875f6c80cd8931d84f9824e05c', '["person","ann@example.com","01a2149d-da69-7268-86d4-d64238112f33","acme","","key.create","01a2149d-df8e-71ff-b4cf-e32ffa80b16f"]', '{"names":[["01a2149d-df8e-71ff-b4cf-e32ffa80b16f"]],"entries":[[0,1,2,3,4,4,null,5,4,4,0,""]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 8, 8, 1795642220556, '\x6cd80561e5c48fc996e32ba95e20dae37567d1913c4dd1780c9d236a6e961c40', '["person","ann@example.com","","people.write","01a2149d-e009-741a-a560-6791858d1b03","ana"]', '{"names":[["01a2149d-e009-741a-a560-6791858d1b03","ana"],["ana"],[]],"entries":[[0,1,2,2,2,2,null,3,2,2,0,"",1,2,2]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('commands', 9, 9, 1795642220681, '\xdb47dac6b24c4528947ba75272e33909e5b9cbcfa52cc0d3e29f6a1e46d4b533', '["person","ann@example.com","","people.write","01a2149d-e084-7368-bd4b-03b6d0fdd0ff","ana"]', '{"names":[["01a2149d-e084-7368-bd4b-03b6d0fdd0ff","ana"],["ana reveal acme/web production"],[]],"entries":[[0,1,2,2,2,2,null,3,2,2,0,"",1,2,2]]}');
INSERT INTO public.audit_segments_2026_11 VALUES ('01a2149d-e205-739d-ac3e-fffca3094677', 1, 1, 1795642221217, '\xc09a9af763e0a28ce3800b781fc3bed9f378fc32b887c7599054e1b025123c5e', '["key","01a2149d-df8e-71ff-b4cf-e32ffa80b16f","01a2149d-da69-7268-86d4-d64238112f33","acme","01a2149d-dafd-70e8-9365-3a5a348e0ed6","web","production","variables.read","127.0.0.1","Bun/1.4.5"]', '{"names":[["TOKEN"]],"entries":[[0,1,2,3,4,5,6,7,8,9,0,"c9610f70-82b2-4803-856a-397d9da1e7a2"]]}');


--
-- Data for Name: audit_segments_2026_12; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_01; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_02; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_03; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_04; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_2027_05; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_segments_default; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: audit_signers; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.audit_signers VALUES (1, '\xbde24bc461b5f83c2b87c4840c4272f69d11d5eee7da159094efae2f77185cbb', 1795642221058, 'd3c8c36ad73dca78', '\x0101000000023c5f20803cbaf7785920a771d81abc93b3acba6b625984c190cf05363a67b1aec3d7a9568610603b0da64fd946146a02825fc98344e28339a86bfb11');


--
-- Data for Name: data_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.data_keys VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 1, 'd3c8c36ad73dca78', '\x010100000000242246f79d0377d39243991567a1d4177a12f1a02feca46c9c9e0c8bcc2f240a2f22d5f3ced93979a7f51b2607b43c51274656debac7330dcc123fbe', 1795642219261);


--
-- Data for Name: file_contents; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.file_contents VALUES ('01a2149d-df15-7518-8861-a77d21eedef4', '01a2149d-dafd-70e8-9365-3a5a348e0ed6', 8, 1, '\x010100000001f8bab45194495fed1bdca621be2b7aaa15c3578c26dae3e1d75e37f8bc4f8ab891a2c555');


--
-- Data for Name: key_uses; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.key_uses VALUES ('01a2149d-df8e-71ff-b4cf-e32ffa80b16f', 1795642221211);


--
-- Data for Name: organizations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.organizations VALUES ('01a2149d-da69-7268-86d4-d64238112f33', 'acme', 'acme', 'pro', 1795642219113, '\xcaefc7790d5d488183598fdb4a3c83cc4a38809fa8a7dec3d2e66b6b8845abba');


--
-- Data for Name: projects; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.projects VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', '01a2149d-da69-7268-86d4-d64238112f33', 'web', 'web', '[0,0,0,1,0,0,0]', '[0,0,0,1,0,0,0]', '[0,0,0,1,0,0,0]', '[1795642219261,1795642219261,1795642220306]', 1795642219261, 7);


--
-- Data for Name: rosters; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.rosters VALUES ('01a2149d-e009-741a-a560-6791858d1b03', 1, '[{"name":"ana","organizationId":"01a2149d-da69-7268-86d4-d64238112f33","signIn":null,"holdings":[]}]', '\x8ca63070ef43b5da8d57b88a1e77b9c133fb02e09f766db0a28c8ce6db54bb0a');
INSERT INTO public.rosters VALUES ('01a2149d-e084-7368-bd4b-03b6d0fdd0ff', 2, '[{"name":"ana","organizationId":"01a2149d-da69-7268-86d4-d64238112f33","signIn":null,"holdings":[{"organizationId":"01a2149d-da69-7268-86d4-d64238112f33","projectId":"01a2149d-dafd-70e8-9365-3a5a348e0ed6","environments":4,"rights":["reveal"]}]}]', '\xc914620e8ea139cdf13aba33b12aa7931bb8699d154b2adadc5ba2103919d238');


--
-- Data for Name: set_versions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'development', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x4cabc00dc4a708429a7c23eda8926bdeb2d3f94a6179ee329154a5679352e6fa', NULL, '\x42cb185a372989debd9782c2ddc96130509650cdfe245a637b1a8bd0d02c87d3', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'staging', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x6d143a5f6d1775dc46c036b38e1034a44742b43317baa94adbfefe5aa97008fc', NULL, '\x3304b681a2cc67e6732de146c8837dc30475b6773c77c37f3c3b256c1b8277d9', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'development', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x3d742da26c511d639b1a963d40e27c5ea61ec5e774cb733ae460c0b2f28c32fa', NULL, '\xa4cea2f3cce63529f38ac152cda5749e292a2569731a9591237577a9bde6069b', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'staging', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xada765f40959350bf16edfedc30e89e6fa5a04ba42e20692a0a34b14b36f09ce', NULL, '\xdb6de13906b97e09a2ac3d66d748b4da51ebbf7b9abf7d9ea51cc9fde58636a7', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'development', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x2fbd6062128216d442b3b7f528e0b2176d3b182bca662fed9115b61d9238e734', NULL, '\x85eaea32958d3803be1a26a4d0a5d17679cc8afe84c157c4261e1834c94606e4', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'staging', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xb3cbda58885174726644b6501ad1d417e3c4cbe8bfef41ebf4470e324b6c706a', NULL, '\x9f69f613b0c482c4e41a77eb43c93b521a1ec4bbed98feb695fa8e7006da2f34', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'production', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\x618ece95e42dcb5a8972e0e6c67407afba85b061f808002e8cc0f73855981956', 1, '\xc3d16e7c1d85ac794650b06268710217ee92b9f1c90b7dec83d9ecb9a160520d', '[]', '\x010100000001028143a58537ccc819eb861d590e21c58f6489ceac45804ab46be444edc7d3ab');
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'production', 2, 1795642219458, 'ann@example.com', '{"added":["TOKEN"],"changed":[],"deleted":[]}', '\xc518319bba892671e2efb33d97b95219fbf9bff1c35649f5807499f61c0426f2', 1, '\xe8d9c755a9d8d33d166e6bad322cff7d28c9547fa94b834443aecf0a50a22687', '[{"key":"TOKEN","updatedAt":1795642219458,"version":2}]', '\x0101000000012291b80cd24934a51cd27d858211b1aba1de47ddf65c1375a9593dc98b95bef6c43a63f229f764758361420873527d5fe21d1e0376006088a9c1ba16ef4731aac7292b7b48eef1c66fbdfc18e058a265671c6e865783db5d94d426181d');
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'production', 3, 1795642219690, 'ann@example.com', '{"added":[],"changed":["TOKEN"],"deleted":[]}', '\x8ca4fbcc7803371344c4611f2cd98a1151ef1ed8bb2dde23b0f9ba050b09e6c2', NULL, '\x6016242be9ce36ff5b654bfe341ec4d4b3cd04a360e430f4da77077f50ddf8c2', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'production', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xf9ee7ffd8ba006545294e18075ddd8125bb5b9527d98a606dc3ab882b0d4a131', 1, '\x9be28ffbbf77e17df506aa4128921f162c15fa9d3a6313eead356298f241a146', '[]', '\x01010000000149bd91dd830a001b557b5f9e4aa4cacde43ecf1d65afda66aecdae406d4e55f4');
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'production', 2, 1795642219984, 'ann@example.com', '{"added":["mail"],"changed":[],"deleted":[]}', '\xc984f2578f7980514af894e55d2b89d9a9b71b8b609f31f36d6f58a9954bb5f7', NULL, '\xbf7583d891b48d6efb2416230bdfd58fe6288fe26940ee661cf866d0d57e63da', NULL, NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'production', 1, 1795642219261, 'ann@example.com', '{"added":[],"changed":[],"deleted":[]}', '\xef5531a465034308ed102f773a1fc27dee6a8c7011c8bf87af090bc9d5ffbd01', 0, '\x40cc105ecf85508854907bd2a4b48a976e3e91f31a7a3404deb23e5059ee26f1', '[]', NULL);
INSERT INTO public.set_versions VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'production', 2, 1795642220306, 'ann@example.com', '{"added":["config/f"],"changed":[],"deleted":[]}', '\x114a83c90e69b77cf52fcb5a11251472a5f669d7b5b7630915e45fc741dd94aa', NULL, '\xf410715ca53f76fe1eadabf393c1babe508108fb36af5d428e86d60827959019', NULL, NULL);


--
-- Data for Name: sets; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'development', 1, 1, '\x42cb185a372989debd9782c2ddc96130509650cdfe245a637b1a8bd0d02c87d3', '[]', '\x0101000000015200910ff55f5f48474fc966ec9839ef6f61107ac4a31d3836f95c8257e9303d');
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'staging', 1, 1, '\x3304b681a2cc67e6732de146c8837dc30475b6773c77c37f3c3b256c1b8277d9', '[]', '\x0101000000015c9fac9833c5459bb8bc86347048a028f15522fd037360344f846e595edbd833');
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'development', 1, 1, '\xa4cea2f3cce63529f38ac152cda5749e292a2569731a9591237577a9bde6069b', '[]', '\x0101000000013e4ce169a9aea95f5065a5568c4941733433c36ad9db0bb38aefcd5873558526');
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'staging', 1, 1, '\xdb6de13906b97e09a2ac3d66d748b4da51ebbf7b9abf7d9ea51cc9fde58636a7', '[]', '\x0101000000019ede30115f48652937f369553b2a09fc3986e8aa529300086c3d6a34684acd80');
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'development', 1, 0, '\x85eaea32958d3803be1a26a4d0a5d17679cc8afe84c157c4261e1834c94606e4', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'staging', 1, 0, '\x9f69f613b0c482c4e41a77eb43c93b521a1ec4bbed98feb695fa8e7006da2f34', '[]', NULL);
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'variables', 'production', 3, 1, '\x6016242be9ce36ff5b654bfe341ec4d4b3cd04a360e430f4da77077f50ddf8c2', '[{"key":"TOKEN","updatedAt":1795642219690,"version":3}]', '\x010100000001da01b7e2807fcf62156832c58e803ce101b2d34688cfdb8ba7fe5411fa1ef508a1cac1cef55609775f4883c21899226b3608b33556a2d675810887f834c551c788852d5ea066b134c911628513c47907c417302826428829864d35424dd3');
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'accounts', 'production', 2, 1, '\xbf7583d891b48d6efb2416230bdfd58fe6288fe26940ee661cf866d0d57e63da', '[{"name":"mail","updatedAt":1795642219984,"version":2}]', '\x010100000001206a775b77ce719f92cdb593d41f6be34b9463cad574888c63f82efada7417e340d6ff4b4a05717b06edc22a4a43668fb519ea5c7f3f9a2f1a89c3d8fcc1b3');
INSERT INTO public.sets VALUES ('01a2149d-dafd-70e8-9365-3a5a348e0ed6', 'files', 'production', 2, 0, '\xf410715ca53f76fe1eadabf393c1babe508108fb36af5d428e86d60827959019', '[{"id":"01a2149d-df15-7518-8861-a77d21eedef4","path":"config/f","name":"f","mode":"0600","size":8,"sha256":"b0e76ff73bda4879cbe86fd7040b54dda54b7dfd96a4f2c0724c07814da7fefd","contentType":"application/octet-stream","updatedAt":1795642220306}]', NULL);


--
-- Data for Name: system_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.system_keys VALUES ('pepper', 'd3c8c36ad73dca78', '\x01010000000228855ba2ff6b7e2c4fefab9ed78b89316661d9b7a78f13dbe769db8824994bc34f66b2c1c770f9f4cdca297e08e3fa4ebd8e3ed777a594f92da273c2', 1795642219099);
INSERT INTO public.system_keys VALUES ('grant', 'd3c8c36ad73dca78', '\x010100000002bec0ee2f997b006e2763e494dc55eb956d566a66bed80dc3673ef99cf549d6ae0f6d88a434e7a8d6c1aa00db936fafe1f64e5c5d45867703bccc0db4', 1795642219099);
INSERT INTO public.system_keys VALUES ('audit', 'd3c8c36ad73dca78', '\x0101000000020e3f40dc1f06d1da4b1ca2f102b9f8a821df13bdc452bbaa93db6e7438b536ea086f34d251ab9b3f6198d3e124d866dc9fa4f0120ca17fc6382764b9', 1795642219099);
INSERT INTO public.system_keys VALUES ('listing', 'd3c8c36ad73dca78', '\x0101000000029dbdfed478c3de08c819fd732871b39aed39820f9891449a27092e9a6e85f6c190daede668c2b6f428328e03ed4586ef9387c05c3505b3a359a8de5c', 1795642219099);


--
-- Data for Name: variable_requests; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Name: __drizzle_migrations_id_seq; Type: SEQUENCE SET; Schema: drizzle; Owner: -
--

SELECT pg_catalog.setval('drizzle.__drizzle_migrations_id_seq', 8, true);


--
-- Name: __drizzle_migrations __drizzle_migrations_pkey; Type: CONSTRAINT; Schema: drizzle; Owner: -
--

ALTER TABLE ONLY drizzle.__drizzle_migrations
    ADD CONSTRAINT __drizzle_migrations_pkey PRIMARY KEY (id);


--
-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (id);


--
-- Name: audit_checkpoints audit_checkpoints_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_checkpoints
    ADD CONSTRAINT audit_checkpoints_pkey PRIMARY KEY (lane);


--
-- Name: audit_checkpoints_signed audit_checkpoints_signed_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_checkpoints_signed
    ADD CONSTRAINT audit_checkpoints_signed_pkey PRIMARY KEY (size);


--
-- Name: audit_cosignatures audit_cosignatures_witness_size_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_cosignatures
    ADD CONSTRAINT audit_cosignatures_witness_size_pk PRIMARY KEY (witness, size);


--
-- Name: audit_exceptions audit_exceptions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_exceptions
    ADD CONSTRAINT audit_exceptions_pkey PRIMARY KEY (subject);


--
-- Name: audit_heads audit_heads_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_heads
    ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (lane);


--
-- Name: audit_leaves audit_leaves_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_leaves
    ADD CONSTRAINT audit_leaves_pkey PRIMARY KEY (leaf);


--
-- Name: audit_segments audit_segments_lane_first_seq_at_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments
    ADD CONSTRAINT audit_segments_lane_first_seq_at_pk PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2026_11 audit_segments_2026_11_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2026_11
    ADD CONSTRAINT audit_segments_2026_11_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2026_12 audit_segments_2026_12_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2026_12
    ADD CONSTRAINT audit_segments_2026_12_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_01 audit_segments_2027_01_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_01
    ADD CONSTRAINT audit_segments_2027_01_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_02 audit_segments_2027_02_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_02
    ADD CONSTRAINT audit_segments_2027_02_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_03 audit_segments_2027_03_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_03
    ADD CONSTRAINT audit_segments_2027_03_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_04 audit_segments_2027_04_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_04
    ADD CONSTRAINT audit_segments_2027_04_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_2027_05 audit_segments_2027_05_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_2027_05
    ADD CONSTRAINT audit_segments_2027_05_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_segments_default audit_segments_default_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_segments_default
    ADD CONSTRAINT audit_segments_default_pkey PRIMARY KEY (lane, first_seq, at);


--
-- Name: audit_signers audit_signers_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.audit_signers
    ADD CONSTRAINT audit_signers_pkey PRIMARY KEY (generation);


--
-- Name: data_keys data_keys_project_id_generation_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.data_keys
    ADD CONSTRAINT data_keys_project_id_generation_pk PRIMARY KEY (project_id, generation);


--
-- Name: file_contents file_contents_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.file_contents
    ADD CONSTRAINT file_contents_pkey PRIMARY KEY (id);


--
-- Name: key_uses key_uses_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.key_uses
    ADD CONSTRAINT key_uses_pkey PRIMARY KEY (key_id);


--
-- Name: organizations organizations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.organizations
    ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);


--
-- Name: projects projects_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_pkey PRIMARY KEY (id);


--
-- Name: rosters rosters_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.rosters
    ADD CONSTRAINT rosters_pkey PRIMARY KEY (id);


--
-- Name: set_versions set_versions_project_id_kind_environment_version_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.set_versions
    ADD CONSTRAINT set_versions_project_id_kind_environment_version_pk PRIMARY KEY (project_id, kind, environment, version);


--
-- Name: sets sets_project_id_kind_environment_pk; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sets
    ADD CONSTRAINT sets_project_id_kind_environment_pk PRIMARY KEY (project_id, kind, environment);


--
-- Name: system_keys system_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.system_keys
    ADD CONSTRAINT system_keys_pkey PRIMARY KEY (purpose);


--
-- Name: variable_requests variable_requests_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.variable_requests
    ADD CONSTRAINT variable_requests_pkey PRIMARY KEY (id);


--
-- Name: api_keys_digest; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX api_keys_digest ON public.api_keys USING btree (digest);


--
-- Name: api_keys_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_expiry ON public.api_keys USING btree (expires_at) WHERE (revoked_at IS NULL);


--
-- Name: api_keys_organization; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_organization ON public.api_keys USING btree (organization_id);


--
-- Name: api_keys_trusts; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX api_keys_trusts ON public.api_keys USING btree (id) WHERE (trust IS NOT NULL);


--
-- Name: audit_leaves_segment; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX audit_leaves_segment ON public.audit_leaves USING btree (lane, last_seq);


--
-- Name: audit_segments_at; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_at ON ONLY public.audit_segments USING btree (at);


--
-- Name: audit_segments_2026_11_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2026_11_at_idx ON public.audit_segments_2026_11 USING btree (at);


--
-- Name: audit_segments_2026_12_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2026_12_at_idx ON public.audit_segments_2026_12 USING btree (at);


--
-- Name: audit_segments_2027_01_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_01_at_idx ON public.audit_segments_2027_01 USING btree (at);


--
-- Name: audit_segments_2027_02_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_02_at_idx ON public.audit_segments_2027_02 USING btree (at);


--
-- Name: audit_segments_2027_03_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_03_at_idx ON public.audit_segments_2027_03 USING btree (at);


--
-- Name: audit_segments_2027_04_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_04_at_idx ON public.audit_segments_2027_04 USING btree (at);


--
-- Name: audit_segments_2027_05_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_2027_05_at_idx ON public.audit_segments_2027_05 USING btree (at);


--
-- Name: audit_segments_default_at_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX audit_segments_default_at_idx ON public.audit_segments_default USING btree (at);


--
-- Name: file_contents_project; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX file_contents_project ON public.file_contents USING btree (project_id);


--
-- Name: organizations_slug; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX organizations_slug ON public.organizations USING btree (slug);


--
-- Name: projects_slug; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX projects_slug ON public.projects USING btree (organization_id, slug);


--
-- Name: rosters_version; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX rosters_version ON public.rosters USING btree (version);


--
-- Name: sets_marked; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sets_marked ON public.sets USING btree (project_id) WHERE (strpos(listing, '"rotateBy":"'::text) > 0);


--
-- Name: variable_requests_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX variable_requests_expiry ON public.variable_requests USING btree (organization_id, expires_at);


--
-- Name: variable_requests_number; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX variable_requests_number ON public.variable_requests USING btree (organization_id, number);


--
-- Name: variable_requests_project; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX variable_requests_project ON public.variable_requests USING btree (project_id);


--
-- Name: audit_segments_2026_11_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2026_11_at_idx;


--
-- Name: audit_segments_2026_11_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2026_11_pkey;


--
-- Name: audit_segments_2026_12_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2026_12_at_idx;


--
-- Name: audit_segments_2026_12_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2026_12_pkey;


--
-- Name: audit_segments_2027_01_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_01_at_idx;


--
-- Name: audit_segments_2027_01_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_01_pkey;


--
-- Name: audit_segments_2027_02_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_02_at_idx;


--
-- Name: audit_segments_2027_02_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_02_pkey;


--
-- Name: audit_segments_2027_03_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_03_at_idx;


--
-- Name: audit_segments_2027_03_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_03_pkey;


--
-- Name: audit_segments_2027_04_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_04_at_idx;


--
-- Name: audit_segments_2027_04_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_04_pkey;


--
-- Name: audit_segments_2027_05_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_2027_05_at_idx;


--
-- Name: audit_segments_2027_05_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_2027_05_pkey;


--
-- Name: audit_segments_default_at_idx; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_at ATTACH PARTITION public.audit_segments_default_at_idx;


--
-- Name: audit_segments_default_pkey; Type: INDEX ATTACH; Schema: public; Owner: -
--

ALTER INDEX public.audit_segments_lane_first_seq_at_pk ATTACH PARTITION public.audit_segments_default_pkey;


--
-- Name: api_keys api_keys_organization_id_organizations_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_organization_id_organizations_id_fk FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


--
-- Name: data_keys data_keys_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.data_keys
    ADD CONSTRAINT data_keys_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: file_contents file_contents_data_key; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.file_contents
    ADD CONSTRAINT file_contents_data_key FOREIGN KEY (project_id, generation) REFERENCES public.data_keys(project_id, generation);


--
-- Name: file_contents file_contents_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.file_contents
    ADD CONSTRAINT file_contents_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: key_uses key_uses_key_id_api_keys_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.key_uses
    ADD CONSTRAINT key_uses_key_id_api_keys_id_fk FOREIGN KEY (key_id) REFERENCES public.api_keys(id) ON DELETE CASCADE;


--
-- Name: projects projects_organization_id_organizations_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.projects
    ADD CONSTRAINT projects_organization_id_organizations_id_fk FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


--
-- Name: set_versions set_versions_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.set_versions
    ADD CONSTRAINT set_versions_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: sets sets_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sets
    ADD CONSTRAINT sets_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- Name: variable_requests variable_requests_organization_id_organizations_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.variable_requests
    ADD CONSTRAINT variable_requests_organization_id_organizations_id_fk FOREIGN KEY (organization_id) REFERENCES public.organizations(id);


--
-- Name: variable_requests variable_requests_project_id_projects_id_fk; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.variable_requests
    ADD CONSTRAINT variable_requests_project_id_projects_id_fk FOREIGN KEY (project_id) REFERENCES public.projects(id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


